// Why an event satisfies an expression, or not: the tree of TRUE, FALSE and UNKNOWN.

import { Latest, NoAnswer, get, post, replaced, told } from "./api.js";
import { byId, make, replace, shown } from "./dom.js";
import { jsonText, readJson } from "./exact.js";

const latest = new Latest();
const box = byId("explanation");
const SAMPLE = "tamis sample";

const storedChosen = () => byId("explain-stored").checked;

/** Explain an expression against the event that the form has. Shows nothing while there is no event. */
export async function explain(expression) {
  const signal = latest.begin();
  try {
    const event = storedChosen() ? await storedEvent(signal) : sampleEvent();
    if (event === null) return clear();
    // Texts are put together, so that numbers reach the service as they were written.
    const path = storedChosen() ? "v1/explain" : "v1/explain?tagged=true";
    const text = `{"expression": ${JSON.stringify(expression)}, ${event}}`;
    show(await post(path, undefined, { text, signal }));
  } catch (error) {
    if (!replaced(error) && !(error instanceof NoAnswer)) replace(box, make("p", { class: "problem" }, told(error)));
  }
}

export function clear() {
  latest.end();
  replace(box, []);
}

function sampleEvent() {
  const text = byId("explain-event").value.trim();
  if (!text) return null;
  readEvent(text);
  sessionStorage.setItem(SAMPLE, text);
  return `"event": ${text}`;
}

/** An event that was typed. Raises an Error that says what is wrong with it. */
export function readEvent(text) {
  let event;
  try {
    event = readJson(text);
  } catch (error) {
    throw new Wrong(`The event is not JSON: ${error.message}`);
  }
  if (event === null || typeof event !== "object" || Array.isArray(event)) {
    throw new Wrong('An event is an object, such as {"price": 15}.');
  }
  return event;
}

class Wrong extends Error {
  toString() {
    return this.message;
  }
}

async function storedEvent(signal) {
  const number = byId("explain-number").value.trim();
  const shownEvent = byId("explain-stored-event");
  shownEvent.hidden = true;
  if (!number) return null;
  if (!/^[1-9]\d{0,17}$/.test(number)) throw new Wrong("The number of an event is 1, 2, 3 and so on.");
  const { event } = await get(`v1/events/${number}`, { signal });
  shownEvent.textContent = shown(jsonText(event));
  shownEvent.hidden = false;
  return `"event_sequence": ${number}`;
}

const WORDS = new Map([[true, "TRUE"], [false, "FALSE"], [null, "UNKNOWN"]]);

function show({ truth, tree }) {
  const verdict = truth ? "The event matches." : "The event does not match.";
  replace(box, [
    make("p", { class: `outcome ${WORDS.get(truth).toLowerCase()}` }, verdict),
    make("ul", { class: "tree" }, branch(tree)),
  ]);
}

function branch(node) {
  const word = WORDS.get(node.truth);
  const children = node.operands ?? [];
  return make("li", {},
    make("div", { class: "node" },
      make("span", { class: `truth ${word.toLowerCase()}` }, word), " ",
      make("span", {},
        make("span", { class: "code" }, shown(node.operator ?? node.expression ?? "")), " ",
        make("span", { class: "quiet" }, valuesText(node)),
      ),
    ),
    children.length ? make("ul", {}, children.map(branch)) : null,
  );
}

/** What the event had: "price is 15", or the note of the service, such as "price is missing". */
function valuesText({ values = {}, note }) {
  const texts = Object.entries(values)
    .filter(([, found]) => found.length)
    .map(([name, found]) => `${shown(name)} is ${found.map((value) => shown(jsonText(value))).join(", ")}`);
  if (note) texts.push(shown(note));
  return texts.length ? `(${texts.join("; ")})` : "";
}

export function chooseStored(number) {
  byId("explain-stored").checked = true;
  byId("explain-number").value = number;
  chosen();
}

function chosen() {
  byId("sample-field").hidden = storedChosen();
  byId("stored-field").hidden = !storedChosen();
}

/** Call a function when the event changes. */
export function onEventChange(call) {
  for (const id of ["explain-sample", "explain-stored"]) {
    byId(id).addEventListener("change", () => {
      chosen();
      call();
    });
  }
  byId("explain-event").addEventListener("input", call);
  byId("explain-number").addEventListener("input", call);
}

byId("explain-event").value = sessionStorage.getItem(SAMPLE) ?? '{"genre": "crime", "price": 15}';
