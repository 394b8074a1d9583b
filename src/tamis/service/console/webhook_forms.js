// Dialogs for webhooks: one adds or changes a webhook, one takes a new secret, one shows a secret for the only time.

import { ask as request, part, post, told, value } from "./api.js";
import { ask, byId, say, shown } from "./dom.js";

const path = (subscriber) => `v1/subscribers/${part(subscriber)}/webhook`;
let changed = null; // The webhook that the form changes; null: it adds one.
let rotated = "";
let after = () => {};

/** Say what is to be done when a webhook has changed. */
export function whenChanged(call) {
  after = call;
}

/** Open the form: empty, or with a webhook that is to be changed. */
export function editWebhook(found = null) {
  changed = found;
  byId("webhook-title").textContent = found ? `Change the webhook of ${shown(found.subscriber)}` : "New webhook";
  byId("webhook-save").textContent = found ? "Change" : "Add";
  byId("webhook-subscriber").value = found ? found.subscriber : "";
  byId("webhook-subscriber-field").hidden = found !== null;
  byId("webhook-url").value = found ? found.url : "";
  byId("webhook-batch").value = found ? found.batch : 100;
  say("webhook-problem", "");
  byId("webhook-dialog").showModal();
  byId(found ? "webhook-url" : "webhook-subscriber").focus();
}

/** Open the form that takes a new secret. */
export function rotateSecret(subscriber) {
  rotated = subscriber;
  byId("rotate-title").textContent = `New secret for ${shown(subscriber)}`;
  byId("rotate-hours").value = "24";
  say("rotate-problem", "");
  byId("rotate-dialog").showModal();
  byId("rotate-hours").focus();
}

/** Remove a webhook, if the user says yes. Returns whether it was removed. */
export async function removeWebhook({ subscriber, dead_letters: letters }) {
  const lost = letters ? " Its dead letters are lost." : "";
  if (!(await ask(`Remove the webhook of ${shown(subscriber)}?${lost} The notes stay in the queue.`, "Remove"))) return false;
  await request("DELETE", path(subscriber));
  return true;
}

byId("webhook-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const subscriber = changed ? changed.subscriber : byId("webhook-subscriber").value.trim();
  const url = byId("webhook-url").value.trim();
  const batch = Number(byId("webhook-batch").value);
  const wrong = [
    ["webhook-subscriber", !subscriber, "Enter a subscriber."],
    ["webhook-url", !url, "Enter a URL."],
    ["webhook-batch", !Number.isInteger(batch) || batch < 1, "The notes of one message are 1, 2, 3 and so on."],
  ].find(([, isWrong]) => isWrong);
  say("webhook-problem", wrong ? wrong[2] : "");
  if (wrong) return byId(wrong[0]).focus();
  try {
    if (!changed && (await isThere(subscriber))) {
      return say("webhook-problem", `${shown(subscriber)} already has a webhook. Close this form and change it in the list.`);
    }
    const found = await value("PUT", path(subscriber), { body: { url, batch } });
    byId("webhook-dialog").close();
    after(changed ? "Changed." : "Added.");
    if (!changed) showSecret(found);
  } catch (error) {
    say("webhook-problem", told(error));
  }
});

async function isThere(subscriber) {
  try {
    await request("GET", path(subscriber));
    return true;
  } catch (error) {
    if (error.status === 404) return false; // The subscriber may be unknown, too. Then adding says so.
    throw error;
  }
}

byId("rotate-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = byId("rotate-hours").value.trim();
  const hours = Number(text);
  if (!text || !(hours >= 0)) {
    say("rotate-problem", "Enter a number of hours, such as 24 or 0.");
    return byId("rotate-hours").focus();
  }
  try {
    const found = await post(`${path(rotated)}/rotate`, { overlap: hours * 3600 });
    byId("rotate-dialog").close();
    after("The webhook has a new secret.");
    showSecret(found);
  } catch (error) {
    say("rotate-problem", told(error));
  }
});

function showSecret({ subscriber, secret }) {
  byId("secret-title").textContent = `Secret of ${shown(subscriber)}`;
  byId("secret-text").value = secret;
  say("secret-said", "");
  byId("secret-dialog").showModal();
  byId("secret-copy").focus();
}

byId("secret-copy").addEventListener("click", async () => {
  byId("secret-text").select();
  try {
    await navigator.clipboard.writeText(byId("secret-text").value);
    say("secret-said", "Copied.");
  } catch {
    say("secret-said", "The browser does not allow that. The secret is selected: copy it with the keyboard.");
  }
});

// The secret does not stay in the page.
byId("secret-dialog").addEventListener("close", () => {
  byId("secret-text").value = "";
});

for (const name of ["webhook", "rotate", "secret"]) {
  byId(`${name}-close`).addEventListener("click", () => byId(`${name}-dialog`).close());
}
byId("new-webhook").addEventListener("click", () => editWebhook());
