// Watching: the notes of a subscriber, or all events, as they come. The newest is on top.

import { NoAnswer, Problem, get, part, replaced, signals, told, withQuery } from "./api.js";
import { connected } from "./connection.js";
import { byId, make, named, say, shown } from "./dom.js";
import { jsonText } from "./exact.js";
import * as format from "./format.js";
import { subscriptionPlace } from "./places.js";
import { messages } from "./stream.js";

const KEPT = 200;
const EARLIER = 20;
const NAMES = 12;

export class Watch {
  constructor() {
    this.controller = null;
    this.fresh = [];
    this.came = 0;
    this.drawing = false;
  }

  get running() {
    return this.controller !== null;
  }

  /** Show what comes until `stop`. A broken connection is made again, and nothing is shown twice. */
  async start(subscriber) {
    this.stop();
    const { signal } = (this.controller = new AbortController());
    byId("stream").replaceChildren();
    this.came = 0;
    this.fresh = [];
    say("watch-problem", "");
    this.tell(subscriber);
    let after = null;
    while (!signal.aborted) {
      try {
        after ??= await (subscriber === null ? lastEvent(signal) : lastNote(subscriber, signal));
        const source = subscriber === null ? events(after, signal) : notes(subscriber, after, signal);
        for await (const entry of source) {
          after = entry.sequence;
          this.take(entry, subscriber);
        }
      } catch (error) {
        if (replaced(error)) return;
        if (error instanceof Problem && error.kind === "retention-error") {
          after = error.document.first - 1;
          continue;
        }
        if (!(error instanceof NoAnswer) && told(error)) {
          say("watch-problem", told(error));
          return this.stop();
        }
      }
      await again(signal);
    }
  }

  stop() {
    this.controller?.abort();
    this.controller = null;
    byId("watch-stop").hidden = true;
    byId("watch-start").hidden = false;
    if (!this.came) say("watch-status", "");
  }

  take(entry, subscriber) {
    this.came++;
    this.fresh.push(entry);
    if (this.fresh.length > KEPT) this.fresh.shift();
    if (this.drawing) return;
    this.drawing = true;
    // Many may come between two frames; only the newest of them are drawn.
    requestAnimationFrame(() => {
      this.drawing = false;
      const list = byId("stream");
      list.prepend(...this.fresh.reverse().map((each) => item(each, subscriber)));
      while (list.childElementCount > KEPT) list.lastElementChild.remove();
      this.fresh = [];
      this.tell(subscriber);
    });
  }

  tell(subscriber) {
    const noun = subscriber === null ? "event" : "note";
    byId("watch-stop").hidden = !this.running;
    byId("watch-start").hidden = this.running;
    say("watch-status", this.came ? `${format.several(this.came, noun)}, the newest first.` : `Waiting for ${noun}s.`);
  }
}

/** The number of the note to begin after: a few earlier notes are shown, too. */
async function lastNote(subscriber, signal) {
  const { first, last } = await get(`v1/subscribers/${part(subscriber)}`, { signal });
  return Math.max(first - 1, last - EARLIER, 0);
}

async function lastEvent(signal) {
  const { last_event: last } = await get("v1/stats", { signal });
  return Math.max(0, last - EARLIER);
}

async function* notes(subscriber, after, signal) {
  for await (const { event, data } of messages(`v1/subscribers/${part(subscriber)}/stream`, { after }, signal)) {
    if (event === "problem" || data.status) throw new Problem(data.status, data);
    yield data;
  }
}

async function* events(after, signal) {
  for (;;) {
    const found = await get(withQuery("v1/events", { after, limit: 100 }), { signal });
    for (const each of found.events) {
      after = each.sequence;
      yield each;
    }
    if (found.events.length < 100) await pause(1000, signal);
  }
}

/** Wait until the service answers. */
async function again(signal) {
  if (connected()) return pause(1000, signal);
  await new Promise((resolve) => {
    for (const [target, name] of [[signals, "back"], [signal, "abort"]]) target.addEventListener(name, resolve, { once: true });
  });
}

const pause = (time, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, time);
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    resolve();
  }, { once: true });
});

function item(entry, subscriber) {
  const event = make("pre", { class: "code event" }, shown(jsonText(entry.event)));
  if (subscriber === null) return make("li", {}, make("p", {}, make("b", {}, `event ${format.count(entry.sequence)}`)), event);
  const names = entry.subscriptions.slice(0, NAMES);
  const links = names.flatMap((name) =>
    [" ", make("a", { href: subscriptionPlace(subscriber, name, entry.event_sequence) }, named(name))]);
  const more = entry.subscriptions.length - names.length;
  if (more > 0) links.push(make("span", { class: "quiet" }, ` and ${format.count(more)} more`));
  return make("li", {},
    make("p", {},
      make("b", {}, `note ${format.count(entry.sequence)}`), " ",
      make("span", { class: "quiet" }, `event ${format.count(entry.event_sequence)}${entry.expired ? ", expired" : ""}`),
      make("span", { class: "names" }, links),
    ),
    event,
  );
}
