// The list of subscriptions, beside the editor.

import { get, told } from "./api.js";
import { ask, byId, make, named, say, settled, shown } from "./dom.js";
import { editor } from "./editor.js";
import * as format from "./format.js";
import { Pages } from "./pages.js";
import { subscriptionPlace } from "./places.js";
import { knownSubscribers } from "./subscribers.js";

export const roles = ["subscribe"];

const pages = new Pages({
  prefix: "subscriptions",
  path: "v1/subscriptions",
  member: "subscriptions",
  noun: "subscription",
  empty: "There are no subscriptions yet. Add the first one.",
  row,
});

function row(each) {
  const place = subscriptionPlace(each.subscriber, each.name);
  const key = `subscription ${each.number}`;
  const open = editor.isOpen(each.subscriber, each.name);
  return make("tr", { "aria-selected": open ? "true" : null, class: each.paused ? "paused" : null },
    make("td", { class: "who" },
      make("a", { href: place, "data-key": key }, named(each.name)),
      make("span", { class: "quiet" }, named(each.subscriber)),
    ),
    make("td", { class: "what" }, make("div", { class: "code expression" }, shown(expressionText(each.expression)))),
    make("td", { class: "number", "data-label": "matches" }, format.count(each.matches)),
    make("td", { class: "state" }, state(each)),
  );
}

/** An expression as text. One that was given in its JSON form is shown so. */
export const expressionText = (expression) =>
  (typeof expression === "string" ? expression : JSON.stringify(expression)).replace(/\s+/g, " ");

function state({ paused, valid_from: from, valid_until: until }) {
  const now = new Date().toISOString();
  if (until !== null && until <= now) return "over";
  if (paused) return "paused";
  if (from !== null && from > now) return `from ${format.moment(from)}`;
  return until === null ? "" : `until ${format.moment(until)}`;
}

const search = settled(200, () => {
  knownSubscribers(byId("subscriptions-subscriber").value);
  pages.search({
    search: byId("subscriptions-search").value,
    subscriber: byId("subscriptions-subscriber").value,
  });
});
byId("subscriptions-search").addEventListener("input", search);
byId("subscriptions-subscriber").addEventListener("input", search);
byId("subscriptions-form").addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});
byId("new-subscription").addEventListener("click", () => {
  if (location.hash === "#subscriptions") editor.openNew(byId("subscriptions-subscriber").value);
  else location.hash = "#subscriptions";
  byId("editor-title").focus();
});
byId("editor-back").addEventListener("click", () => {
  byId("subscriptions-title").scrollIntoView();
  byId("subscriptions-search").focus({ preventScroll: true });
});
editor.addEventListener("changed", () => pages.load());
editor.addEventListener("opened", () => pages.entries && pages.draw());

let here = null;

export async function show(words, may) {
  pages.start();
  if (may("admin")) count();
  const wanted = location.hash;
  if (wanted === here) return;
  const [subscriber, name, event] = words;
  const same = name === undefined ? editor.isNew() : editor.isOpen(subscriber, name) && event === undefined;
  if (!same && editor.isChanged() && !(await ask("Discard what you have changed?", "Discard"))) {
    history.replaceState(null, "", here ?? "#subscriptions");
    return;
  }
  here = wanted;
  if (same) return;
  if (name === undefined) return editor.openNew(subscriber ?? "");
  try {
    await editor.open(subscriber, name, event);
    if (window.matchMedia("(max-width: 60rem)").matches) byId("editor").scrollIntoView();
  } catch (error) {
    say("subscriptions-problem", told(error));
  }
}

export function hide() {
  pages.stop();
}

async function count() {
  try {
    pages.total = (await get("v1/figures")).subscriptions;
    if (pages.entries) pages.draw();
  } catch {
    // The list is there without its length.
  }
}
