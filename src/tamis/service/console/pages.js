// A long list, a page at a time. The service finds a page by the number of the last entry before it.

import { Latest, NoAnswer, get, replaced, told, withQuery } from "./api.js";
import { Repeat } from "./connection.js";
import { byId, replace, say } from "./dom.js";
import * as format from "./format.js";

const SIZE = 50;
/** Milliseconds: a list that comes sooner than this is asked for again every few seconds. */
const QUICK = 250;

export class Pages {
  /**
   * @param {object} options
   *   prefix: of the ids of rows, status, problem and buttons. path: the route. member: of the answer.
   *   noun: of an entry. empty: what to say when there is no entry at all. row: entry -> <tr>.
   */
  constructor(options) {
    this.options = options;
    this.parameters = {};
    this.starts = [0];
    this.total = null;
    this.latest = new Latest();
    this.took = 0;
    this.repeat = new Repeat(3, async () => {
      if (this.took < QUICK) await this.load();
    });
    const { prefix } = options;
    this.buttons = ["first", "previous", "next"].map((name) => byId(`${prefix}-${name}`));
    const [first, previous, next] = this.buttons;
    first.addEventListener("click", () => this.turn([0]));
    previous.addEventListener("click", () => this.turn(this.starts.slice(0, -1)));
    next.addEventListener("click", () => this.turn([...this.starts, this.next]));
  }

  /** Show the first page of what the parameters choose. */
  search(parameters) {
    this.parameters = parameters;
    return this.turn([0]);
  }

  start() {
    this.took = 0;
    this.repeat.start();
  }

  stop() {
    this.repeat.stop();
    this.latest.end();
  }

  async turn(starts) {
    this.starts = starts;
    await this.load();
  }

  async load() {
    const { prefix, path, member } = this.options;
    const table = byId(`${prefix}-table`);
    const after = this.starts[this.starts.length - 1];
    const begin = performance.now();
    // Nothing is said about answers that come at once.
    const patience = setTimeout(() => {
      table.setAttribute("aria-busy", "true");
      say(`${prefix}-status`, "Searching…");
    }, 400);
    const signal = this.latest.begin();
    try {
      const found = await get(withQuery(path, { ...this.parameters, after, limit: SIZE }), { signal });
      this.took = performance.now() - begin;
      this.take(found);
    } catch (error) {
      if (replaced(error) || error instanceof NoAnswer) return;
      // A subscriber whose name is not yet typed to its end.
      if (error.status === 404) this.take({ [member]: [], next: null });
      else this.fail(told(error));
    } finally {
      clearTimeout(patience);
      if (!signal.aborted) table.removeAttribute("aria-busy");
    }
  }

  take(found) {
    this.next = found.next;
    this.entries = found[this.options.member];
    say(`${this.options.prefix}-problem`, "");
    this.draw();
  }

  draw() {
    const { prefix, noun, empty, row } = this.options;
    replace(byId(`${prefix}-rows`), this.entries.map(row));
    byId(`${prefix}-table`).hidden = this.entries.length === 0;
    const searched = Object.values(this.parameters).some(Boolean);
    const first = (this.starts.length - 1) * SIZE + 1;
    const last = first + this.entries.length - 1;
    const total = searched || this.total === null ? "" : ` of ${format.count(Math.max(this.total, last))}`;
    say(`${prefix}-status`, this.entries.length
      ? `${format.count(first)}–${format.count(last)}${total}`
      : searched ? `No ${noun} found.` : this.starts.length > 1 ? "No more." : empty);
    const here = this.starts.length > 1;
    const enabled = [here, here, this.next !== null && this.entries.length > 0];
    // The focus does not stay on a button that is switched off.
    const focused = this.buttons.indexOf(document.activeElement);
    this.buttons.forEach((button, place) => (button.disabled = !enabled[place]));
    if (focused >= 0 && !enabled[focused]) this.buttons.find((button) => !button.disabled)?.focus();
    const alone = !enabled.some(Boolean);
    this.buttons.forEach((button) => (button.hidden = alone));
  }

  fail(text) {
    const { prefix } = this.options;
    this.entries = [];
    replace(byId(`${prefix}-rows`), []);
    byId(`${prefix}-table`).hidden = true;
    say(`${prefix}-status`, "");
    say(`${prefix}-problem`, text);
  }
}
