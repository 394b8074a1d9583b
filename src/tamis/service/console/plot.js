// A plot of some minutes: axes with units, one or two lines, and the values under the pointer.

import { make, makeSvg, replace } from "./dom.js";

const HEIGHT = 132;
const LEFT = 54;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 20;
/** Pixels that a label below the axis and the gap beside it take. */
const LABEL = 50;

export class Plot {
  /**
   * @param {object} options
   *   title: what is shown. lines: [{key, name}], the second one is dashed. show: value -> text.
   *   label: value -> text at the axis. window: seconds. least: the axis reaches at least this value.
   */
  constructor(options) {
    this.options = options;
    this.points = [];
    this.now = 0;
    this.value = make("p", { class: "values" });
    this.svg = makeSvg("svg", { role: "img", height: HEIGHT });
    this.element = make("figure", { class: "plot" }, make("figcaption", {}, options.title), this.value, this.svg);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.leave());
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  update(points, now) {
    this.points = points;
    this.now = now;
    this.draw();
  }

  draw() {
    const width = this.svg.clientWidth;
    if (!width) return;
    const { lines, window, least = 0, label } = this.options;
    const high = Math.max(least, ...this.points.flatMap((point) => lines.map(({ key }) => point[key] ?? 0)));
    const ticks = ticksUpTo(high);
    const top = ticks[ticks.length - 1];
    this.x = (time) => LEFT + (width - LEFT - RIGHT) * (1 - (this.now - time) / window);
    this.y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
    const inside = this.points.filter((point) => point.time >= this.now - window);
    replace(this.svg, [
      ...ticks.map((tick) => this.level(tick, width, label)),
      ...this.minutes(width, window),
      ...lines.map(({ key }, place) => makeSvg("path", { class: `line line-${place}`, d: this.path(inside, key) })),
    ]);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.cursor = makeSvg("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    this.svg.append(this.cursor);
    if (this.pointed === undefined) this.tell(this.points[this.points.length - 1], "now");
    else this.mark();
    this.svg.setAttribute("aria-label", this.summary(inside));
  }

  level(tick, width, label) {
    const y = Math.round(this.y(tick)) + 0.5;
    return makeSvg("g", {},
      makeSvg("line", { class: tick ? "grid" : "axis", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }),
      makeSvg("text", { class: "tick", x: LEFT - 6, y: y + 3.5, "text-anchor": "end" }, label(tick)),
    );
  }

  minutes(width, window) {
    const found = [];
    const isTight = this.x(this.now) - this.x(this.now - 60) < LABEL;
    for (let back = 0; back <= window; back += 60) {
      const x = this.x(this.now - back);
      const words = back === 0 ? "now" : `−${back / 60}${back === window ? " min" : ""}`;
      const anchor = back === 0 ? "end" : back === window ? "start" : "middle";
      found.push(makeSvg("line", { class: "axis", x1: x, x2: x, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 3 }));
      if (isTight && back === window - 60) continue; // The longest label, that of the beginning, needs its room.
      found.push(makeSvg("text", { class: "tick", x, y: HEIGHT - 5, "text-anchor": anchor }, words));
    }
    return found;
  }

  /** A line that breaks where a value is missing. A value with no neighbour is a dot. */
  path(points, key) {
    let text = "";
    points.forEach((point, place) => {
      if (point[key] === null || point[key] === undefined) return;
      const where = `${this.x(point.time).toFixed(1)} ${this.y(point[key]).toFixed(1)}`;
      const before = points[place - 1]?.[key] ?? null;
      const after = points[place + 1]?.[key] ?? null;
      text += before === null ? `M${where}` : `L${where}`;
      if (before === null && after === null) text += "h.1";
    });
    return text;
  }

  point(event) {
    this.pointed = event.clientX - this.svg.getBoundingClientRect().left;
    this.mark();
  }

  leave() {
    this.pointed = undefined;
    this.draw();
  }

  /** Show the values of the point nearest to the pointer. */
  mark() {
    let nearest = null;
    for (const point of this.points) {
      const distance = Math.abs(this.x(point.time) - this.pointed);
      if (nearest === null || distance < nearest.distance) nearest = { point, distance };
    }
    if (nearest === null) return;
    const x = this.x(nearest.point.time);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    this.cursor.setAttribute("visibility", x < LEFT ? "hidden" : "visible");
    const ago = Math.round(this.now - nearest.point.time);
    this.tell(nearest.point, ago ? `${ago} s ago` : "now");
  }

  tell(point, when) {
    const { lines, show } = this.options;
    replace(this.value, [
      make("span", { class: "when" }, when),
      ...lines.map(({ key, name }, place) =>
        make("span", { class: `value value-${place}` },
          lines.length > 1 ? make("span", { class: "key" }, name) : null,
          make("b", {}, show(point?.[key] ?? null)),
        ),
      ),
    ]);
  }

  summary(points) {
    const { title, lines, show } = this.options;
    const texts = lines.map(({ key, name }) => {
      const values = points.map((point) => point[key]).filter((value) => typeof value === "number");
      if (!values.length) return `${name}: no values yet`;
      return `${name}: now ${show(points[points.length - 1][key])}, highest ${show(Math.max(...values))}`;
    });
    return `${title}, last ${this.options.window / 60} minutes. ${texts.join(". ")}`;
  }
}

/** Three or four round numbers from 0 up to a value or a little more. */
export function ticksUpTo(value) {
  if (!(value > 0)) return [0, 1];
  const raw = value / 3;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * size).find((each) => each >= raw * 0.9999);
  const found = [0];
  while (found[found.length - 1] < value) found.push(found.length * step);
  return found;
}
