// The key that a server may ask for. Its field shows once one is asked for.

import { byId, showError } from "./dom.js";

// The name in the tab's own store, which goes with the tab.
const KEPT = "txl-key";

export class KeyField {
  #api;
  #given = [];

  constructor(api) {
    this.#api = api;
    api.key = sessionStorage.getItem(KEPT) ?? "";
    api.onRefused = () => this.#show(true);
    byId("key-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#take(byId("key").value.trim());
    });
    byId("forget-key").addEventListener("click", () => this.#take(""));
    this.#show(false);
  }

  // Resolves when another key has been entered.
  changed() {
    return new Promise((resolve) => this.#given.push(resolve));
  }

  #take(key) {
    const written = /^[\x21-\x7e]*$/.test(key);
    showError(byId("key-error"), written ? null
      : new Error("A key has neither spaces nor other than ASCII letters."));
    if (!written) return;
    byId("key").value = "";
    sessionStorage.setItem(KEPT, key);
    this.#api.key = key;
    this.#show(false);
    for (const resolve of this.#given.splice(0)) resolve();
  }

  #show(wanted) {
    const part = byId("key-part");
    part.hidden = !wanted && this.#api.key === "";
    part.open = wanted;
    byId("forget-key").disabled = this.#api.key === "";
  }
}
