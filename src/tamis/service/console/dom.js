// Making elements. Names and values come from strangers, so everything is inserted as text, never as HTML.

export const byId = (id) => document.getElementById(id);

/** An element. Properties that begin with "on" are listeners, `class` and names with "-" are attributes. */
export function make(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An element of a drawing. */
export function makeSvg(tag, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Replaces the children of an element. The focus stays on the control with the same data-key. */
export function replace(parent, children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  parent.replaceChildren(...[children].flat());
  if (focused === undefined) return;
  for (const element of parent.querySelectorAll("[data-key]")) {
    if (element.dataset.key === focused) return element.focus({ preventScroll: true });
  }
}

/** Writes a text into an element, and hides the element while there is none. */
export function say(id, text) {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
  element.hidden = !text && !element.hasAttribute("role");
  if (element.classList.contains("problem")) element.hidden = !text;
}

// Controls, marks of direction and line ends. Joiners stay: emoji and many scripts need them.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const JOINERS = "\u200c\u200d";

/** A name as it is shown: characters that nobody can see, or that turn the text around, are written as \u{...}. */
export function shown(text) {
  return String(text).replace(UNSEEN, (letter) =>
    JOINERS.includes(letter) ? letter : `\\u{${letter.codePointAt(0).toString(16)}}`,
  );
}

/** A name of a subscriber or of a subscription. It cannot change the direction of the text around it. */
export function named(text, properties = {}) {
  return make("bdi", { class: "name", title: text.length > 24 ? shown(text) : undefined, ...properties }, shown(text));
}

/** A bar that shows a part of a whole. Figures stand beside it, so that nobody has to see it. */
export function bar(value, whole) {
  const filled = make("div", {});
  filled.style.width = `${whole > 0 ? Math.min(100, (100 * value) / whole) : 0}%`;
  return make("div", { class: "bar-line", "aria-hidden": "true" }, filled);
}

/** Calls a function after the last of several calls, `delay` milliseconds later. */
export function settled(delay, call) {
  let timer = 0;
  return (...words) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...words), delay);
  };
}

/** Asks a question. The answer is whether the user said yes. */
export function ask(text, yes) {
  const dialog = byId("question");
  byId("question-text").textContent = text;
  byId("question-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  byId("question-no").focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}
