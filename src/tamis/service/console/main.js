// The page: which view is seen, who asks, and what a token allows.
//
//   index.html     the parts of all views                   style.css, parts.css   how they look
//   api            requests, problems, the token            connection             whether the service answers
//   dom            elements, always with text               exact                  JSON whose numbers stay as they are
//   format         numbers and times for people             places                 addresses behind #
//   token          the dialog that asks for a token         figures, plot          rates and how they are drawn
//   overview       rates, latency, what stands out          rankings               its lists
//   subscriptions  the list                                 pages                  long lists, page by page
//   editor         one subscription                         verdict, explain       what is said of its expression
//   live           publishing and watching                  watch, stream          what comes, as it comes
//   queues         how far subscribers have read            webhooks               states and dead letters
//   webhook_forms  adding, changing, secrets                subscribers            names that are offered
//   index_view     segments, memory, drift
//
// Everything is plain JavaScript that browsers load as modules. The page has no other source than the service.

import { Problem, get, signals, token } from "./api.js";
import "./connection.js";
import { byId, named, replace } from "./dom.js";
import * as index from "./index_view.js";
import * as live from "./live.js";
import * as overview from "./overview.js";
import * as queues from "./queues.js";
import * as subscriptions from "./subscriptions.js";
import { askForToken, closeTokenDialog } from "./token.js";

// A view has `roles` (one of them is enough), `show(words, may)` and `hide()`.
const VIEWS = { overview, subscriptions, live, queues, index };
const NAMES = Object.keys(VIEWS);
let roles = [];
let seen = null;

const may = (role) => roles.includes(role) || roles.includes("admin");
const allowed = (name) => VIEWS[name].roles.some(may);

/** The parts of the address behind #, such as ["subscriptions", "ann", "crime"]. */
function place() {
  return location.hash.slice(1).split("/").map((word) => {
    try {
      return decodeURIComponent(word);
    } catch {
      return word;
    }
  });
}

function go() {
  const [wanted, ...words] = place();
  const name = NAMES.includes(wanted) && allowed(wanted) ? wanted : NAMES.find(allowed);
  if (name === undefined) return close("This token has no role.");
  byId("closed").hidden = true;
  if (seen !== null && seen !== name) VIEWS[seen].hide();
  for (const each of NAMES) byId(`view-${each}`).hidden = each !== name;
  for (const link of document.querySelectorAll("[data-view]")) {
    link.hidden = !allowed(link.dataset.view);
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${name[0].toUpperCase()}${name.slice(1)} – Tamis`;
  if (seen !== name) window.scrollTo(0, 0);
  seen = name;
  VIEWS[name].show(words, may);
}

function close(reason) {
  if (seen !== null) VIEWS[seen].hide();
  seen = null;
  roles = [];
  for (const each of NAMES) byId(`view-${each}`).hidden = true;
  for (const link of document.querySelectorAll("[data-view]")) link.hidden = true;
  byId("visit").hidden = true;
  byId("closed").hidden = false;
  byId("closed-reason").textContent = reason;
}

/** Asks the service who we are, and shows what we may see. */
async function enter() {
  let access;
  try {
    access = await get("v1/access");
  } catch (error) {
    // Signals have said the rest: "lost" and "denied".
    if (error instanceof Problem && error.status !== 401 && error.kind !== "not-ready") close(error.message);
    return;
  }
  closeTokenDialog();
  roles = access.roles;
  byId("visit").hidden = false;
  replace(byId("tenant"), named(access.tenant));
  replace(byId("roles"), roles.includes("admin") ? "admin" : roles.join(", "));
  byId("change-token").hidden = access.token === null && !token.text;
  if (seen !== null && !allowed(seen)) VIEWS[seen].hide();
  go();
}

signals.addEventListener("denied", () => {
  close("This service wants a token.");
  askForToken(token.text
    ? "The service does not accept this token. It may be over or revoked."
    : "This service wants a token. The command “tamis token create” makes one.");
});
signals.addEventListener("back", enter);
signals.addEventListener("token", enter);
byId("change-token").addEventListener("click", () => askForToken(""));
byId("give-token").addEventListener("click", () => askForToken(""));
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
window.addEventListener("hashchange", go);
enter();
