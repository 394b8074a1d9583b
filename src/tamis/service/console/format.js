// Numbers, times and sizes as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export const MISSING = "–";

/** 1,234,567 */
export const count = (value) => (typeof value === "number" ? whole.format(value) : MISSING);

/** 0.52, 12.3, 1,234 */
export function rate(value) {
  if (typeof value !== "number") return MISSING;
  return value >= 100 ? whole.format(value) : short.format(value);
}

/** 1.2M: for labels of axes. */
export const label = (value) => (Math.abs(value) < 1000 ? short.format(value) : compact.format(value));

/** A time in seconds: 850 ns, 12.3 µs, 4.5 ms, 2.1 s. */
export function seconds(value) {
  if (typeof value !== "number") return MISSING;
  if (value === 0) return "0";
  if (value < 1e-11) return "below 0.01 ns"; // a subscription that an event almost never meets
  for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]) {
    if (value >= size * 0.9995) return `${short.format(value / size)} ${unit}`;
  }
  return `${short.format(value * 1e9)} ns`;
}

/** A size: 1.5 GB. */
export function bytes(value) {
  if (typeof value !== "number") return MISSING;
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (value >= size * 0.9995) return `${short.format(value / size)} ${unit}`;
  }
  return `${whole.format(value)} B`;
}

/** How long something lasts: 3 days 4 h, 12 min, 40 s. */
export function duration(value) {
  if (typeof value !== "number") return MISSING;
  const days = Math.floor(value / 86400);
  const hours = Math.floor((value % 86400) / 3600);
  const minutes = Math.floor((value % 3600) / 60);
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min` : `${Math.max(0, Math.floor(value))} s`;
}

/** A moment in UTC: 2026-12-24 18:00. Seconds are shown when there are any. */
export function moment(text) {
  if (!text) return MISSING;
  return text.replace("T", " ").replace(/(:00)?(\.\d+)?Z$/, "");
}

/** "1 note", "1,234 notes" */
export const several = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
