// Webhooks, their states and their dead letters.

import { NoAnswer, ask as request, get, part, post, told, withQuery } from "./api.js";
import { ask, byId, make, named, replace, say, shown } from "./dom.js";
import { jsonText } from "./exact.js";
import * as format from "./format.js";
import { editWebhook, removeWebhook, rotateSecret, whenChanged } from "./webhook_forms.js";

const STEP = 50;
const LETTERS = 20;
const shownWebhooks = new Map();
let limit = STEP;

/** Ask for all webhooks and show them. What is unfolded stays so. */
export async function loadWebhooks() {
  try {
    const { webhooks, next } = await get(withQuery("v1/webhooks", { limit }));
    byId("webhooks-panel").hidden = false;
    byId("webhooks-none").hidden = webhooks.length > 0;
    say("webhooks-problem", "");
    const names = new Set(webhooks.map(({ subscriber }) => subscriber));
    for (const name of shownWebhooks.keys()) if (!names.has(name)) shownWebhooks.delete(name);
    for (const each of webhooks) {
      if (!shownWebhooks.has(each.subscriber)) shownWebhooks.set(each.subscriber, new Webhook(each.subscriber));
      shownWebhooks.get(each.subscriber).update(each);
    }
    const elements = webhooks.map(({ subscriber }) => shownWebhooks.get(subscriber).element);
    const list = byId("webhooks");
    // Elements that stay where they are keep the focus.
    if (elements.length !== list.childElementCount || elements.some((each, place) => each !== list.children[place])) {
      replace(list, elements);
    }
    byId("webhooks-more").hidden = next === null;
  } catch (error) {
    if (error instanceof NoAnswer) return;
    const missing = error.status === 404;
    byId("webhooks-panel").hidden = missing;
    say("webhooks-problem", missing ? "" : told(error));
  }
}

byId("webhooks-more").addEventListener("click", () => {
  limit = Math.min(1000, limit + STEP);
  loadWebhooks();
});

whenChanged((text) => {
  say("webhooks-said", text);
  loadWebhooks();
});

class Webhook {
  constructor(subscriber) {
    this.subscriber = subscriber;
    this.path = `v1/subscribers/${part(subscriber)}/webhook`;
    this.state = make("span", { class: "state" });
    this.change = this.button("Change", "", () => editWebhook(this.found));
    this.rotate = this.button("New secret", "", () => rotateSecret(subscriber));
    this.remove = this.button("Remove", "danger", () => this.removeAfterAsking());
    this.rotation = make("p", { class: "quiet" });
    this.url = make("p", { class: "code quiet url" });
    this.failure = make("p", { class: "problem" });
    this.pause = make("button", { type: "button", class: "small", onclick: () => this.act(this.verb) });
    this.summary = make("summary", {});
    this.letters = make("ol", { class: "letters" });
    this.again = make("button", { type: "button", class: "small", onclick: () => this.act("dead-letters/replay", {}) }, "Send all again");
    this.forget = make("button", { type: "button", class: "small danger", onclick: () => this.forgetAll() }, "Forget all");
    this.details = make("details", { ontoggle: () => this.details.open && this.loadLetters() }, this.summary, this.letters,
      make("div", { class: "buttons" }, this.again, this.forget));
    this.element = make("li", { class: "webhook" },
      make("div", { class: "heading" }, make("h3", {}, named(subscriber), " ", this.state),
        make("div", { class: "acts" }, this.pause, this.change, this.rotate, this.remove)),
      this.url, this.rotation, this.failure, this.details);
  }

  button(text, more, act) {
    return make("button", { type: "button", class: `small ${more}`, "aria-label": `${text}: webhook of ${shown(this.subscriber)}`, onclick: act }, text);
  }

  update(found) {
    const changed = this.found?.dead_letters !== found.dead_letters;
    this.found = found;
    this.state.textContent = found.state;
    this.state.classList.toggle("stopped", found.state !== "active");
    this.url.textContent = shown(found.url);
    const tries = found.tries ? ` ${format.several(found.tries, "try").replace("trys", "tries")}, next ${format.moment(found.next_try)}.` : "";
    this.failure.textContent = found.reason ? `${capital(shown(found.reason))}.${tries}` : "";
    this.failure.hidden = !found.reason;
    this.rotation.textContent = found.old_secret_until ? `Signed with the old secret, too, until ${format.moment(found.old_secret_until)}.` : "";
    this.rotation.hidden = !found.old_secret_until;
    this.verb = found.state === "active" ? "pause" : "resume";
    this.pause.textContent = found.state === "active" ? "Pause" : "Resume";
    this.pause.setAttribute("aria-label", `${this.pause.textContent} the webhook of ${shown(this.subscriber)}`);
    this.summary.textContent = format.several(found.dead_letters, "dead letter");
    this.details.hidden = found.dead_letters === 0;
    if (changed && this.details.open) this.loadLetters();
  }

  async loadLetters() {
    try {
      const { dead_letters: letters } = await get(withQuery(`${this.path}/dead-letters`, { limit: LETTERS }));
      const more = this.found.dead_letters - letters.length;
      replace(this.letters, [
        ...letters.map((letter) => this.letter(letter)),
        more > 0 ? make("li", { class: "quiet" }, `and ${format.count(more)} more`) : [],
      ].flat());
    } catch (error) {
      say("webhooks-problem", told(error));
    }
  }

  letter({ sequence, tries, reason, moment, replaying, note }) {
    const body = { sequences: [sequence] };
    const key = `letter ${this.subscriber} ${sequence}`;
    const button = (text, act, more) =>
      make("button", { type: "button", class: `small ${more}`, "data-key": `${key} ${text}`, "aria-label": `${text}: note ${sequence}`, onclick: act }, text);
    return make("li", {},
      make("p", {},
        make("b", {}, `note ${format.count(sequence)}`), " ",
        make("span", { class: "quiet" }, `${moment ? `${format.moment(moment)}, ` : ""}after ${tries} ${tries === 1 ? "try" : "tries"}: ${shown(reason)}`),
        replaying ? " is sent again" : ""),
      make("pre", { class: "code event" }, shown(jsonText(note.event ?? note))),
      make("div", { class: "buttons" },
        button("Send again", () => this.act("dead-letters/replay", body), ""),
        button("Forget", () => this.act("dead-letters/forget", body), "danger")),
    );
  }

  async forgetAll() {
    const number = format.several(this.found.dead_letters, "dead letter");
    if (await ask(`Forget ${number} of ${shown(this.subscriber)}? The notes stay in the queue.`, "Forget all")) {
      await this.act("dead-letters/forget", {});
    }
  }

  async removeAfterAsking() {
    say("webhooks-problem", "");
    try {
      if (!(await removeWebhook(this.found))) return;
      say("webhooks-said", "Removed.");
      await loadWebhooks();
      byId("new-webhook").focus(); // The button that had the focus is gone.
    } catch (error) {
      say("webhooks-problem", told(error));
    }
  }

  async act(verb, body) {
    say("webhooks-problem", "");
    say("webhooks-said", "");
    try {
      await (body ? post(`${this.path}/${verb}`, body) : request("POST", `${this.path}/${verb}`));
      say("webhooks-said", SAID[verb]);
      await loadWebhooks();
      if (this.details.open) await this.loadLetters();
    } catch (error) {
      say("webhooks-problem", told(error));
    }
  }
}

const SAID = {
  pause: "Paused. The notes wait.",
  resume: "Resumed.",
  "dead-letters/replay": "The dead letters will be sent again.",
  "dead-letters/forget": "Forgotten.",
};

const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);
