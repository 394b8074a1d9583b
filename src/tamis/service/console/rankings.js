// What stands out: subscriptions with most matches, deepest queues, slowest subscriptions.

import { bar, byId, make, named, replace } from "./dom.js";
import * as format from "./format.js";
import { livePlace, subscriptionPlace } from "./places.js";

/** Show the lists of an answer of /v1/figures. */
export function rankings(found) {
  list("hottest", "No matches yet.", found.hottest.filter(({ matches }) => matches > 0), (each) => [
    subscriptionLink("hottest", each), format.count(each.matches), each.matches,
  ]);
  list("deepest", "No queue has notes that wait.", found.deepest.filter(({ waiting }) => waiting > 0), (each) => [
    make("a", { href: livePlace(each.name), "data-key": `deepest ${each.number}` }, named(each.name)),
    format.count(each.waiting), each.waiting,
  ]);
  list("slowest", "Nothing is indexed yet.", found.slowest, (each) => [
    subscriptionLink("slowest", each), format.seconds(each.nanoseconds / 1e9), each.nanoseconds,
  ]);
}

function subscriptionLink(list, { subscriber, name }) {
  return make("a", { href: subscriptionPlace(subscriber, name), "data-key": `${list} ${subscriber} ${name}` },
    named(name), " ", make("span", { class: "quiet" }, named(subscriber)));
}

function list(id, empty, entries, row) {
  const rows = entries.slice(0, 8).map(row);
  const most = Math.max(...rows.map(([, , size]) => size));
  const items = rows.map(([link, text, size]) => {
    return make("li", {}, link, make("span", { class: "number" }, text), bar(size, most));
  });
  replace(byId(id), items.length ? items : make("li", { class: "quiet" }, empty));
}
