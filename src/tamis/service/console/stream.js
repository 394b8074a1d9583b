// Server-sent events, read with fetch: an EventSource cannot send a token in a header.

import { ask, broken, withQuery } from "./api.js";
import { readJson } from "./exact.js";

/**
 * The messages of a stream: {event, data}, where data is a JSON value. It ends when the service ends the stream.
 * Raises a Problem, a NoAnswer, or an AbortError when `signal` says so.
 */
export async function* messages(path, parameters, signal) {
  const answer = await ask("GET", withQuery(path, parameters), { signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      throw broken(error);
    }
    if (piece.done) return;
    const blocks = (left + piece.value).split(/\r?\n\r?\n/);
    left = blocks.pop();
    for (const block of blocks) {
      const message = readBlock(block);
      if (message !== null) yield message;
    }
  }
}

/** A message of its lines; null for comments, which keep the connection alive. */
function readBlock(block) {
  let event = "message";
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (name === "event") event = value;
    if (name === "data") data.push(value);
  }
  return data.length ? { event, data: readJson(data.join("\n")) } : null;
}

