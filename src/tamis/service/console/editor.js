// The editor: add, change, pause and remove a subscription.

import { ask as request, get, part, post, replaced, signals, told } from "./api.js";
import { ask, byId, make, named, replace, say } from "./dom.js";
import { chooseStored, clear, explain, onEventChange } from "./explain.js";
import { subscriptionPlace } from "./places.js";
import { check, checkSoon } from "./verdict.js";

const fields = {
  subscriber: byId("editor-subscriber"),
  name: byId("editor-name"),
  expression: byId("editor-expression"),
  weight: byId("editor-weight"),
  valid_from: byId("editor-from"),
  valid_until: byId("editor-until"),
};

class Editor extends EventTarget {
  /** The subscription that is open, as the service gave it; null for a new one. */
  open_ = null;

  isOpen(subscriber, name) {
    return this.open_ !== null && this.open_.subscriber === subscriber && this.open_.name === name;
  }

  isNew() {
    return this.open_ === null;
  }

  /** Whether the form has something that was not saved. */
  isChanged() {
    const now = this.values();
    return Object.keys(fields).some((name) => now[name] !== this.before[name]);
  }

  /** Open a subscription, perhaps explained with a stored event. */
  async open(subscriber, name, event) {
    const found = await get(path(subscriber, name));
    if (event) chooseStored(event);
    this.take(found);
    fields.expression.focus({ preventScroll: true });
  }

  openNew(subscriber = "") {
    this.take(null);
    fields.subscriber.value = subscriber;
    this.before = this.values();
  }

  take(found) {
    this.open_ = found;
    say("editor-said", "");
    say("editor-problem", "");
    const isNew = found === null;
    replace(byId("editor-title"), isNew ? "New subscription" : [named(found.name), " ", make("small", {}, named(found.subscriber))]);
    for (const name of ["subscriber", "name"]) {
      fields[name].value = isNew ? "" : found[name];
      fields[name].parentElement.hidden = !isNew;
    }
    fields.expression.value = isNew ? "" : textOf(found.expression);
    fields.weight.value = isNew ? "1" : String(found.weight);
    fields.valid_from.value = localText(found?.valid_from);
    fields.valid_until.value = localText(found?.valid_until);
    byId("editor-more").open = !isNew && (found.weight !== 1 || Boolean(found.valid_from || found.valid_until));
    byId("editor-save").textContent = isNew ? "Add" : "Change";
    byId("editor-pause").hidden = byId("editor-remove").hidden = isNew;
    byId("editor-pause").textContent = found?.paused ? "Resume" : "Pause";
    this.before = this.values();
    this.look();
    this.dispatchEvent(new Event("opened"));
  }

  values() {
    return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.value]));
  }

  /** Check the expression and explain it, as far as the form goes. */
  async look() {
    const text = fields.expression.value;
    try {
      if ((await check(text)) === null) clear();
      else await explain(text);
    } catch (error) {
      if (!replaced(error)) throw error;
    }
  }

  /** What the form wants to change: the body of the request. */
  wanted() {
    const now = this.values();
    const isNew = this.open_ === null;
    const body = {};
    if (isNew || now.expression !== this.before.expression) body.expression = now.expression;
    if (now.weight !== this.before.weight) {
      body.weight = now.weight.trim() === "" ? NaN : Number(now.weight);
      if (!Number.isFinite(body.weight)) throw new Wrong("The weight must be a number.", fields.weight);
    }
    for (const name of ["valid_from", "valid_until"]) {
      // The field of a browser has no microseconds: a bound that nobody changed is not sent.
      if (fields[name].validity.badInput) throw new Wrong("This is not a full date and time.", fields[name]);
      if (now[name] !== this.before[name]) body[name] = now[name] ? `${now[name]}Z` : null;
    }
    return body;
  }

  async save() {
    // A field of a browser drops line ends, so the names of an open subscription are not read from it.
    const { subscriber, name } = this.open_ ?? this.values();
    if (!subscriber) throw new Wrong("Enter a subscriber.", fields.subscriber);
    if (!name) throw new Wrong("Enter a name.", fields.name);
    if (!fields.expression.value.trim()) throw new Wrong("Enter an expression.", fields.expression);
    const isNew = this.open_ === null;
    if (isNew && (await exists(subscriber, name))
      && !(await ask(`${subscriber} already has a subscription ${name}. Change it?`, "Change it"))) return;
    const answer = await request("PUT", path(subscriber, name), { body: this.wanted() });
    this.take(await answer.json());
    this.done(isNew ? "Added." : "Changed.");
    const place = subscriptionPlace(subscriber, name);
    if (isNew) location.hash = place;
  }

  async pause() {
    const { subscriber, name, paused } = this.open_;
    this.take(await post(`${path(subscriber, name)}/${paused ? "resume" : "pause"}`));
    this.done(paused ? "Resumed." : "Paused.");
  }

  async remove() {
    const { subscriber, name } = this.open_;
    if (!(await ask(`Remove the subscription ${name} of ${subscriber}? Its notes stay.`, "Remove"))) return;
    await request("DELETE", path(subscriber, name));
    this.openNew(subscriber);
    this.done("Removed.");
    location.hash = "#subscriptions";
    byId("editor-title").focus();
  }

  done(text) {
    say("editor-said", text);
    this.dispatchEvent(new Event("changed"));
  }

  /** Run an action of a button. One runs at a time. */
  async run(action) {
    if (this.busy) return;
    this.busy = true;
    say("editor-said", "");
    say("editor-problem", "");
    try {
      await action.call(this);
    } catch (error) {
      say("editor-problem", error instanceof Wrong ? error.message : told(error) || "The service does not answer. Nothing is known of the change.");
      if (error instanceof Wrong) reveal(error.field);
    } finally {
      this.busy = false;
    }
  }
}

class Wrong extends Error {
  constructor(text, field) {
    super(text);
    this.field = field;
  }
}

function reveal(field) {
  const folded = field.closest("details");
  if (folded) folded.open = true;
  field.focus();
}

const path = (subscriber, name) => `v1/subscribers/${part(subscriber)}/subscriptions/${part(name)}`;

async function exists(subscriber, name) {
  try {
    await get(path(subscriber, name));
    return true;
  } catch (error) {
    if (error.status === 404) return false;
    throw error;
  }
}

const textOf = (expression) => (typeof expression === "string" ? expression : JSON.stringify(expression, null, 1));
const localText = (moment) => (moment ? moment.slice(0, 19) : "");

export const editor = new Editor();
editor.openNew();

byId("editor-form").addEventListener("submit", (event) => {
  event.preventDefault();
  editor.run(editor.save);
});
byId("editor-pause").addEventListener("click", () => editor.run(editor.pause));
byId("editor-remove").addEventListener("click", () => editor.run(editor.remove));
fields.expression.addEventListener("input", () => checkSoon(() => editor.look()));
// Enter makes a new line; with Ctrl it saves, as in many editors.
fields.expression.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("editor-form").requestSubmit();
});
onEventChange(() => checkSoon(() => editor.look()));
signals.addEventListener("back", () => editor.look());
