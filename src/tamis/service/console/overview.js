// The overview: rates and latency, and what stands out.

import { get, told } from "./api.js";
import { Repeat } from "./connection.js";
import { byId, make, replace, say } from "./dom.js";
import { History, WINDOW } from "./figures.js";
import * as format from "./format.js";
import { Plot } from "./plot.js";
import { rankings } from "./rankings.js";

export const roles = ["admin"];

const SECONDS = 2;
const history = new History();
const plots = [
  { title: "Events per second", lines: [{ key: "events", name: "events" }], show: format.rate, label: format.label, least: 1 },
  { title: "Matches per second", lines: [{ key: "matches", name: "matches" }], show: format.rate, label: format.label, least: 1 },
  {
    title: "Time to publish",
    lines: [{ key: "middle", name: "half below" }, { key: "tail", name: "99 % below" }],
    show: format.seconds,
    label: format.seconds,
    least: 1e-4,
  },
  { title: "Notes that wait", lines: [{ key: "waiting", name: "notes" }], show: format.count, label: format.label, least: 1 },
].map((options) => new Plot({ window: WINDOW, ...options }));
replace(byId("overview-plots"), plots.map((plot) => plot.element));

const repeat = new Repeat(SECONDS, async () => {
  try {
    render(await figures());
  } catch (error) {
    say("overview-problem", told(error));
  }
});

/** The newest figures. All views that ask for them extend one history. */
export async function figures() {
  const found = await get("v1/figures");
  history.add(found);
  return found;
}

export { history };

export function show() {
  repeat.start();
}

export function hide() {
  repeat.stop();
}

function render(found) {
  const now = history.points[history.points.length - 1].time;
  for (const plot of plots) plot.update(history.points, now);
  const last = history.points[history.points.length - 1];
  const facts = [
    ["Subscriptions", format.count(found.subscriptions)],
    ["Subscribers", format.count(found.subscribers)],
    ["Requests per second", format.rate(last.requests)],
    ["Errors since the start", format.count(found.errors)],
    ["Open streams", format.count(found.streams)],
    ["Memory of the index", format.bytes(found.index_bytes)],
    // Only operators see figures of the process.
    ...("resident_bytes" in found ? [["Memory of the process", format.bytes(found.resident_bytes)]] : []),
    ["Running for", format.duration(found.uptime)],
  ];
  replace(byId("overview-facts"), facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  say("overview-problem", found.problem ? `Work in the background has failed: ${found.problem}` : "");
  rankings(found);
}
