// Names of subscribers, offered where one is to be entered.

import { Latest, get, withQuery } from "./api.js";
import { byId, make, replace } from "./dom.js";

const latest = new Latest();

/** Offer subscribers whose name has a part. */
export async function knownSubscribers(search = "") {
  try {
    const found = await get(withQuery("v1/subscribers", { search, limit: 20 }), { signal: latest.begin() });
    replace(byId("known-subscribers"), found.subscribers.map(({ name }) => make("option", { value: name })));
  } catch {
    // It is an offer only.
  }
}

for (const id of ["editor-subscriber", "watch-subscriber", "subscriptions-subscriber", "webhook-subscriber"]) {
  byId(id).addEventListener("focus", () => knownSubscribers(byId(id).value));
}
for (const id of ["editor-subscriber", "watch-subscriber", "webhook-subscriber"]) {
  byId(id).addEventListener("input", () => knownSubscribers(byId(id).value));
}
