// Whether the service answers. When it does not, one question after another asks for it, with longer and longer pauses.

import { ask, signals } from "./api.js";
import { byId } from "./dom.js";

const PAUSES = [1, 2, 4, 8, 15];
let lost = false;

export const connected = () => !lost;

/** Calls `action` every few seconds, one call after another, while the page is seen and the service answers. */
export class Repeat {
  constructor(seconds, action) {
    this.seconds = seconds;
    this.action = action;
    this.running = 0;
  }

  /** Call now, and then again and again. */
  start() {
    const run = ++this.running;
    const turn = async () => {
      if (run !== this.running) return;
      if (!document.hidden && connected()) await this.action();
      if (run === this.running) setTimeout(turn, this.seconds * 1000);
    };
    turn();
  }

  stop() {
    this.running++;
  }
}

signals.addEventListener("lost", () => {
  if (lost) return;
  lost = true;
  knock(0);
});

async function knock(turn) {
  const pause = PAUSES[Math.min(turn, PAUSES.length - 1)];
  tell(`The service does not answer. Trying again ${pause === 1 ? "every second" : `in ${pause} seconds`}.`);
  await new Promise((resolve) => setTimeout(resolve, pause * 1000));
  try {
    await ask("GET", "ready", { quiet: true });
  } catch {
    return knock(turn + 1);
  }
  lost = false;
  tell("");
  signals.dispatchEvent(new Event("back"));
}

function tell(text) {
  const banner = byId("connection");
  banner.textContent = text;
  banner.hidden = !text;
}
