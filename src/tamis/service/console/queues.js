// Queues: how far each subscriber has read, the deepest queues, and webhooks.

import { get } from "./api.js";
import { Repeat } from "./connection.js";
import { bar, byId, make, named, replace, settled } from "./dom.js";
import * as format from "./format.js";
import { Pages } from "./pages.js";
import { livePlace } from "./places.js";
import { loadWebhooks } from "./webhooks.js";

export const roles = ["subscribe"];

const pages = new Pages({
  prefix: "queues",
  path: "v1/subscribers",
  member: "subscribers",
  noun: "subscriber",
  empty: "There are no subscribers yet.",
  row: (each) => row(each, "queue"),
});

function row({ number, name, first, cursor, last, waiting }, list) {
  // Notes that the queue still has, from the first to the last one.
  const kept = Math.max(last - first + 1, 0);
  return make("tr", {},
    make("td", { class: "who" }, make("a", { href: livePlace(name), "data-key": `${list} ${number}` }, named(name))),
    make("td", { class: "number", "data-label": "first" }, kept ? format.count(first) : format.MISSING),
    make("td", { class: "number", "data-label": "cursor" }, format.count(cursor)),
    make("td", { class: "number", "data-label": "last" }, format.count(last)),
    make("td", { class: waiting ? "number strong" : "number", "data-label": "waiting" }, format.count(waiting)),
    make("td", { class: "bar-cell" }, kept ? bar(waiting, kept) : null),
  );
}

const deepest = new Repeat(5, async () => {
  try {
    const found = await get("v1/figures");
    pages.total = found.subscribers;
    if (pages.entries) pages.draw();
    const rows = found.deepest.filter(({ waiting }) => waiting > 0).slice(0, 5);
    replace(byId("deepest-rows"), rows.map((each) => row(each, "deepest")));
    byId("queues-deepest-panel").hidden = rows.length === 0;
  } catch {
    byId("queues-deepest-panel").hidden = true;
  }
});
const webhooks = new Repeat(5, loadWebhooks);

byId("queues-search").addEventListener("input", settled(200, () => pages.search({ search: byId("queues-search").value })));
byId("queues-form").addEventListener("submit", (event) => event.preventDefault());

export function show(words, may) {
  pages.start();
  webhooks.start();
  if (may("admin")) deepest.start();
}

export function hide() {
  pages.stop();
  webhooks.stop();
  deepest.stop();
}
