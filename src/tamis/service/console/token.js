// The dialog that asks for a token.

import { signals, token } from "./api.js";
import { byId, say } from "./dom.js";

const dialog = byId("token-dialog");

/** Open the dialog. `reason` says why. */
export function askForToken(reason) {
  byId("token-reason").textContent = reason;
  byId("token-reason").hidden = !reason;
  byId("token-tenant").value = token.tenant;
  byId("token-forget").hidden = !token.text;
  say("token-problem", "");
  if (!dialog.open) {
    byId("token-text").value = "";
    dialog.showModal();
  }
  byId("token-text").focus();
}

export function closeTokenDialog() {
  if (dialog.open) dialog.close();
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byId("token-text").value.trim();
  if (!text) return say("token-problem", "Enter a token.");
  // A header holds ASCII only; anything else is no token.
  if (!/^[\x21-\x7e]+$/.test(text)) return say("token-problem", "A token has letters, digits and _ only.");
  const tenant = byId("token-tenant").value.trim();
  if (!/^[\x21-\x7e]*$/.test(tenant)) return say("token-problem", "A tenant's name has small letters, digits, - and _ only.");
  token.keep(text, tenant);
  signals.dispatchEvent(new Event("token"));
});

byId("token-forget").addEventListener("click", () => {
  token.keep("", "");
  dialog.close();
  signals.dispatchEvent(new Event("token"));
});
byId("token-cancel").addEventListener("click", () => dialog.close());
