// A few minutes of figures. The service counts since its start, so rates are differences of two answers.

const SPAN = 300;

/** Seconds that plots show. */
export const WINDOW = SPAN;

/** Figures of the last minutes, as points: {time, events, matches, requests, middle, tail, waiting, memory, drift}. */
export class History {
  points = [];
  last = null;

  /** Take an answer of /v1/figures. A rate is null where there is no answer to compare with. */
  add(figures) {
    const at = figures.time;
    const before = this.last;
    const elapsed = before === null ? 0 : at - before.at;
    // A service that was started again counts from 0. After a long pause, a mean would hide what happened.
    const comparable = before !== null && before.figures.started === figures.started && elapsed > 0 && elapsed < 30;
    const rate = (name) => (comparable ? Math.max(0, figures[name] - before.figures[name]) / elapsed : null);
    const took = comparable ? difference(figures.publish_seconds, before.figures.publish_seconds) : null;
    this.points.push({
      time: at,
      events: rate("events"),
      matches: rate("matches"),
      requests: rate("requests"),
      middle: took && quantile(took, 0.5),
      tail: took && quantile(took, 0.99),
      waiting: figures.waiting,
      memory: figures.index_bytes,
      drift: figures.drift,
    });
    this.last = { at, figures };
    const oldest = at - SPAN - 10;
    while (this.points.length && this.points[0].time < oldest) this.points.shift();
  }
}

/** What a histogram has counted since an earlier answer; null if it has counted nothing. */
export function difference(now, before) {
  const counts = now.counts.map((count, place) => Math.max(0, count - (before.counts[place] ?? 0)));
  const total = counts.reduce((sum, count) => sum + count, 0);
  return total ? { le: now.le, counts, total } : null;
}

/** A quantile of a histogram: the bucket that it lies in, and the place in it if values are spread evenly. */
export function quantile({ le, counts, total }, part) {
  let left = part * total;
  for (let place = 0; place < counts.length; place++) {
    if (left <= counts[place] && counts[place] > 0) {
      const low = place === 0 ? 0 : le[place - 1];
      // Nothing bounds the last bucket.
      const high = place < le.length ? le[place] : low;
      return low + (high - low) * (left / counts[place]);
    }
    left -= counts[place];
  }
  return le[le.length - 1];
}
