// Live: publish a test event, and watch what comes.

import { ask as request, get, told } from "./api.js";
import { byId, make, named, replace, say, shown } from "./dom.js";
import { readJson } from "./exact.js";
import { readEvent } from "./explain.js";
import * as format from "./format.js";
import { subscriptionPlace } from "./places.js";
import { Watch } from "./watch.js";

export const roles = ["publish", "subscribe"];

const watch = new Watch();
const MATCHES = 12;
const ATTRIBUTES = 40;
const KEPT = "tamis event";
let subscribes = false;

byId("publish-event").value = sessionStorage.getItem(KEPT) ?? '{"genre": "crime", "price": 15}';

export function show(words, may) {
  subscribes = may("subscribe");
  byId("publish-panel").hidden = !may("publish");
  byId("watch-panel").hidden = !subscribes;
  // Where the events begin, only the statistics say.
  byId("watch-events").parentElement.hidden = !may("admin");
  if (!may("admin")) byId("watch-notes").checked = true;
  chosen();
  attributes();
  const [subscriber] = words;
  if (!subscribes || !subscriber || (watch.running && byId("watch-subscriber").value === subscriber)) return;
  byId("watch-notes").checked = true;
  byId("watch-subscriber").value = subscriber;
  chosen();
  begin();
}

export function hide() {
  watch.stop();
}

async function attributes() {
  try {
    const found = (await get("v1/attributes")).attributes;
    const more = found.length > ATTRIBUTES ? ` and ${format.count(found.length - ATTRIBUTES)} more` : "";
    const names = found.slice(0, ATTRIBUTES).map((name) => make("bdi", { class: "code" }, shown(name)));
    replace(byId("asked"), found.length
      ? ["Subscriptions ask about ", ...names.flatMap((name, place) => (place ? [", ", name] : [name])), more, "."]
      : ["No subscription asks about anything yet."]);
  } catch {
    replace(byId("asked"), []);
  }
}

async function send(call) {
  say("publish-problem", "");
  replace(byId("published"), []);
  const text = byId("publish-event").value.trim();
  try {
    if (!text) throw new Error("Enter an event.");
    readEvent(text);
    sessionStorage.setItem(KEPT, text);
    replace(byId("published"), await call(text));
  } catch (error) {
    const known = error.constructor === Error ? error.message : told(error);
    say("publish-problem", known || "The service does not answer. Nothing is known of the event.");
  }
}

async function publish(text) {
  const answer = await request("POST", "v1/events?tagged=true&with_matches=true", { text });
  const { sequence, matches, subscriptions = [] } = readJson(await answer.text());
  const links = subscriptions.slice(0, MATCHES).map(({ subscriber, name }) => make("li", {},
    subscribes ? make("a", { href: subscriptionPlace(subscriber, name, sequence) }, named(name)) : named(name), " ",
    make("span", { class: "quiet" }, named(subscriber))));
  if (matches > links.length) links.push(make("li", { class: "quiet" }, `and ${format.count(matches - links.length)} more`));
  return [
    make("p", { class: "said" }, `Published as event ${format.count(sequence)}. `,
      matches ? `${format.several(matches, "subscription")} matched:` : "No subscription matched."),
    links.length ? make("ul", { class: "plain" }, links) : null,
  ].filter(Boolean);
}

async function wouldMatch(text) {
  const answer = await request("POST", "v1/would-match?tagged=true", { text });
  const { would_match: would } = await answer.json();
  return make("p", { class: "said" }, would ? "Yes, some subscription would match." : "No, no subscription would match.");
}

function chosen() {
  byId("watch-subscriber-field").hidden = byId("watch-events").checked;
}

function begin() {
  if (byId("watch-events").checked) return watch.start(null);
  const subscriber = byId("watch-subscriber").value;
  if (subscriber) return watch.start(subscriber);
  say("watch-problem", "Enter a subscriber.");
  byId("watch-subscriber").focus();
}

byId("publish-form").addEventListener("submit", (event) => {
  event.preventDefault();
  send(publish);
});
byId("would-match").addEventListener("click", () => send(wouldMatch));
byId("publish-event").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("publish-form").requestSubmit();
});
for (const id of ["watch-notes", "watch-events"]) {
  byId(id).addEventListener("change", () => {
    watch.stop();
    chosen();
  });
}
byId("watch-form").addEventListener("submit", (event) => {
  event.preventDefault();
  begin();
  if (watch.running) byId("watch-stop").focus();
});
byId("watch-stop").addEventListener("click", () => {
  watch.stop();
  byId("watch-start").focus();
});
