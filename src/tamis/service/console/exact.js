// JSON as it was written. JavaScript's numbers are doubles; numbers that a double cannot hold keep their text.

/** A number that a double cannot hold. */
export class ExactNumber {
  constructor(text) {
    this.text = text;
  }
}

/** The value of a JSON text. */
export function readJson(text) {
  return JSON.parse(text, (key, value, context) => {
    if (typeof value !== "number" || context?.source === undefined) return value;
    const exact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
    return exact ? value : new ExactNumber(context.source);
  });
}

/** A value as JSON in one line, with spaces. */
export function jsonText(value) {
  if (value instanceof ExactNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(jsonText).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${jsonText(member)}`);
    return `{${members.join(", ")}}`;
  }
  return JSON.stringify(value);
}
