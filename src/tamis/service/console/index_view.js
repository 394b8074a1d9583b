// The index: what it holds, what it costs, and whether events still look as they did when it was planned.

import { get, told } from "./api.js";
import { Repeat } from "./connection.js";
import { byId, make, replace, say } from "./dom.js";
import { WINDOW } from "./figures.js";
import * as format from "./format.js";
import { figures, history } from "./overview.js";
import { Plot } from "./plot.js";

export const roles = ["admin"];

const SECONDS = 3;
const DRIFTED = 2;
// Tamis plans a part again when events visit more than twice as many entries as expected.
const plots = [
  { title: "Drift", lines: [{ key: "drift", name: "drift" }], show: drift, label: format.label, least: DRIFTED },
  { title: "Memory of the index", lines: [{ key: "memory", name: "memory" }], show: format.bytes, label: format.bytes, least: 1e6 },
].map((options) => new Plot({ window: WINDOW, ...options }));
replace(byId("index-plots"), plots.map((plot) => plot.element));

const repeat = new Repeat(SECONDS, async () => {
  try {
    const [stats, found] = await Promise.all([get("v1/stats"), figures()]);
    const now = history.points[history.points.length - 1].time;
    for (const plot of plots) plot.update(history.points, now);
    facts(stats, found.resident_bytes);
    segments(stats.matcher.index_stats.segments ?? []);
    say("index-problem", stats.problem ? `Work in the background has failed: ${stats.problem}` : "");
  } catch (error) {
    say("index-problem", told(error));
  }
});

export function show() {
  repeat.start();
}

export function hide() {
  repeat.stop();
}

/** Show figures. Only operators see the memory of the process. */
function facts(stats, resident) {
  const { matcher, retention } = stats;
  const index = matcher.index_stats;
  const perEvent = (number) => (matcher.events ? format.rate(number / matcher.events) : format.MISSING);
  const age = retention.max_age;
  replace(byId("index-facts"), [
    panel("Index", [
      ["Kind", matcher.index],
      ["Subscriptions", format.count(matcher.subscriptions)],
      ["Conjunctions", format.count(matcher.conjunctions)],
      ["Dimensions", format.count(matcher.dimensions)],
      ["Memory of the index", format.bytes(matcher.bytes)],
      ...(resident === undefined ? [] : [["Memory of the process", format.bytes(resident)]]),
      ["Rows not yet in a segment", format.count(index.delta_rows)],
      ["Removed rows", format.count(index.dead)],
      ["Merges", format.count(index.merges)],
    ]),
    panel("Drift", [
      ["Entries an event should visit", format.rate(index.expected)],
      ["Entries recent events visit", format.rate(index.observed)],
      ["Drift", judgedDrift(index.drift)],
      ["Parts planned again", format.count(index.replans)],
      ["Events in the sample", format.count(index.sample)],
      ["Candidates for each event", perEvent(matcher.candidates)],
      ["Survivors for each event", perEvent(matcher.survivors)],
      ["Compared for each event", perEvent(matcher.compared)],
      ["Values of an unexpected kind", format.count(matcher.mismatched)],
    ]),
    panel("Tables", [
      ["Active subscriptions", format.count(stats.active)],
      ["Stored events", format.count(stats.events)],
      ["Last event", format.count(stats.last_event)],
      ["Notes", format.count(stats.notes)],
      ["Commits", format.count(stats.commits)],
      ["Events that are still valid", format.count(stats.valid_events)],
      ["Oldest note", age === null ? "no limit" : format.duration(age)],
      ["Notes of a queue", retention.max_notes === null ? "no limit" : format.count(retention.max_notes)],
      ["When a queue is full", retention.when_full],
    ]),
  ]);
}

function drift(value) {
  return typeof value === "number" ? `${format.rate(value)} ×` : format.MISSING;
}

function judgedDrift(value) {
  return value > DRIFTED ? make("strong", {}, `${drift(value)}, more than planned`) : drift(value);
}

function panel(title, rows) {
  return make("section", { class: "panel" },
    make("h2", {}, title),
    make("dl", { class: "rows" }, rows.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
  );
}

// Members of a segment that say something to an operator, with their names.
const COLUMNS = [
  ["rows", "Rows", format.count],
  ["lists", "Lists", format.count],
  ["pairs", "Pairs", format.count],
  ["guards", "Guards", format.count],
  ["runs", "Runs", format.count],
  ["always", "Always visited", format.count],
  ["expected", "Expected", format.rate],
  ["observed", "Observed", format.rate],
  ["drift", "Drift", drift],
  ["bytes", "Index", format.bytes],
  ["table_bytes", "Tables", format.bytes],
];

function segments(found) {
  const table = byId("segments");
  table.hidden = found.length === 0;
  byId("segments-none")?.remove();
  if (!found.length) {
    byId("segments-scroll").append(make("p", { class: "quiet", id: "segments-none" }, "No segment yet: all rows are in the delta."));
    return;
  }
  const columns = COLUMNS.filter(([key]) => key in found[0]);
  replace(table.tHead, make("tr", {}, columns.map(([, name]) => make("th", { scope: "col", class: "number" }, name))));
  replace(table.tBodies[0], found.map((segment) =>
    make("tr", {}, columns.map(([key, , show]) => make("td", { class: "number" }, show(segment[key]))))));
}
