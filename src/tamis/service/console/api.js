// Requests to the service. Addresses are relative to the page, so a proxy may serve the console below a path.

import { readJson } from "./exact.js";

/** An answer that is a problem document. */
export class Problem extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `the service answered ${status}`);
    this.status = status;
    this.kind = String(document.type || "").split(":").pop();
    this.document = document;
  }
}

/** The service gave no answer. */
export class NoAnswer extends Error {}

export const signals = new EventTarget();
// "lost": no answer came. "back": the service answers again. "denied": it wants a token, or another one.

const TOKEN = "tamis token";
const TENANT = "tamis tenant";

export const token = {
  get text() {
    return sessionStorage.getItem(TOKEN) || "";
  },
  get tenant() {
    return sessionStorage.getItem(TENANT) || "";
  },
  keep(text, tenant) {
    for (const [key, value] of [[TOKEN, text], [TENANT, tenant]]) {
      if (value) sessionStorage.setItem(key, value);
      else sessionStorage.removeItem(key);
    }
  },
};

/** A name as a part of a path. */
export function part(name) {
  if (name === "." || name === ".." || name === "") {
    throw new Problem(0, { detail: `A browser cannot address the name '${name}'. Use curl or a client library.` });
  }
  return encodeURIComponent(name);
}

/** A path with parameters. Parameters that are null, undefined or "" are left out. */
export function withQuery(path, parameters) {
  const found = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return found.length ? `${path}?${new URLSearchParams(found)}` : path;
}

function headers(more) {
  const found = { ...more };
  if (token.text) found.Authorization = `Bearer ${token.text}`;
  if (token.tenant) found["Tamis-Tenant"] = token.tenant;
  return found;
}

/** The answer of the service. Raises a Problem, a NoAnswer, or an AbortError when `signal` says so. */
export async function ask(method, path, { body, text, signal, quiet } = {}) {
  const content = text ?? (body === undefined ? undefined : JSON.stringify(body));
  let answer;
  try {
    answer = await fetch(path, {
      method,
      signal,
      body: content,
      headers: headers(content === undefined ? {} : { "Content-Type": "application/json" }),
      cache: "no-store",
      credentials: "same-origin",
    });
  } catch (error) {
    throw broken(error, quiet);
  }
  if (answer.ok) return answer;
  const problem = new Problem(answer.status, await documentOf(answer));
  if (answer.status === 401 && !quiet) signals.dispatchEvent(new Event("denied"));
  if (problem.kind === "not-ready" && !quiet) signals.dispatchEvent(new Event("lost"));
  throw problem;
}

/** The error for a request that failed, or an answer that broke off. */
export function broken(error, quiet = false) {
  if (error.name === "AbortError") return error;
  if (!quiet) signals.dispatchEvent(new Event("lost"));
  return new NoAnswer("The service does not answer.");
}

async function documentOf(answer) {
  try {
    const found = readJson(await answer.text());
    return found !== null && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}

/** The JSON value of an answer. */
export async function value(method, path, options) {
  const answer = await ask(method, path, options);
  let text;
  try {
    text = await answer.text();
  } catch (error) {
    throw broken(error);
  }
  return text ? readJson(text) : null;
}

export const get = (path, options) => value("GET", path, options);
export const post = (path, body, options) => value("POST", path, { body, ...options });

/** Whether an error only says that a newer request took the place of this one. */
export const replaced = (error) => error.name === "AbortError";

/** Runs requests of one kind: a new one ends the one before. */
export class Latest {
  begin() {
    this.controller?.abort();
    this.controller = new AbortController();
    return this.controller.signal;
  }
  end() {
    this.controller?.abort();
    this.controller = undefined;
  }
}

/** What to tell the user about an error. Nothing if a banner says it already. */
export function told(error) {
  if (replaced(error) || error instanceof NoAnswer) return "";
  if (!(error instanceof Problem)) return String(error);
  if (error.kind === "not-ready") return "";
  const detail = error.message.split("\n")[0];
  const number = error.document.request_id;
  return number && error.status >= 500 ? `${detail} (request ${number})` : detail;
}
