// What the service says about an expression while it is typed.

import { Latest, NoAnswer, Problem, post, replaced, told } from "./api.js";
import { byId, make, replace, settled, shown } from "./dom.js";

const latest = new Latest();
const box = byId("editor-verdict");
const input = byId("editor-expression");

/**
 * Check an expression and show what was found. The answer is the service's, or null if the expression is wrong or empty.
 * Raises an AbortError if a newer check took its place.
 */
export async function check(text) {
  const signal = latest.begin();
  if (!text.trim()) {
    tell("", []);
    return null;
  }
  try {
    const found = await post("v1/check", { expression: text }, { signal });
    tell("right", right(found));
    return found;
  } catch (error) {
    if (replaced(error)) throw error;
    if (!(error instanceof NoAnswer)) tell("wrong", wrong(text, error));
    return null;
  }
}

function tell(kind, children) {
  box.className = `verdict ${kind}`;
  replace(box, children);
  if (kind === "wrong") input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

function right({ attributes, needs_history: history }) {
  const names = attributes.slice(0, 12).map((name) => make("bdi", { class: "code" }, shown(name)));
  const listed = names.flatMap((name, place) => (place ? [", ", name] : [name]));
  if (attributes.length > names.length) listed.push(` and ${attributes.length - names.length} more`);
  return make("p", {}, "Valid.", attributes.length ? [" Asks about ", ...listed, "."] : [],
    history ? " Compares with earlier events." : "");
}

function wrong(text, error) {
  const caret = error instanceof Problem ? error.document.caret : undefined;
  if (!caret) return make("p", {}, told(error));
  const { reason, hint } = error.document;
  return [
    make("pre", { class: "code pointed", "aria-hidden": "true" }, pointed(text, caret)),
    make("p", {}, `${capital(reason)} (line ${caret.line}, column ${caret.column}).`),
    hint ? make("p", { class: "quiet" }, `Hint: ${hint}`) : null,
  ].filter(Boolean);
}

const BEFORE = 34;
const AFTER = 30;

/** The wrong line with a caret below the place. Positions count code points, as Python's do. */
export function pointed(text, { line, column }) {
  const letters = [...(text.split(/\r\n|\r|\n/)[line - 1] ?? "")];
  const at = Math.min(column - 1, letters.length);
  const start = Math.max(0, at - BEFORE);
  const end = Math.min(letters.length, at + AFTER);
  const words = (from, to) => shown(letters.slice(from, to).join("").replaceAll("\t", " "));
  return [
    start > 0 ? "…" : "", words(start, at),
    make("span", { class: "caret" }, words(at, at + 1) || " "),
    words(at + 1, end), end < letters.length ? "…" : "",
  ];
}

const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

export const checkSoon = settled(150, (call) => call());
