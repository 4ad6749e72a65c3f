// One session: its text, its tokens, and what can be done with it.

import { ask, byId } from "./dom.js";
import { visibleText } from "./probability.js";
import { count } from "./rates.js";
import { Spellings } from "./spellings.js";
import { TokenView } from "./tokens.js";

// Tokens shown one by one at first, and more at a time: the server spells each
// in an answer of its own.
const TOKENS = 200;

export class SessionDetail {
  #api;
  #hooks;
  #spellings;
  #view;
  #id = "";
  #ids = [];
  #pageToken = "";
  // How many of the last tokens are shown.
  #window = TOKENS;
  // Counts openings: what an older one brings is dropped.
  #opening = 0;

  // `hooks` are onContinue(id, text), onChange(), onDelete(id) and
  // attempt(action), which does something and shows its error.
  constructor(api, hooks) {
    this.#api = api;
    this.#hooks = hooks;
    this.#spellings = new Spellings(api);
    this.#view = new TokenView(byId("detail-tokens"), (token, index) => {
      byId("detail-position").value = this.#firstShown() + index + 1;
    });
    const on = (id, action) => byId(id).addEventListener("click",
      () => hooks.attempt(action));
    on("detail-more", () => this.#loadPage());
    on("detail-older", () => this.#showTokens(this.#window + TOKENS));
    on("detail-continue", () => hooks.onContinue(this.#id,
      // Of a long session the pages that were read are shown.
      byId("detail-text").textContent + (this.#pageToken ? " […] " : "")));
    on("detail-rewind", () => this.#rewind());
    on("detail-fork", () => this.#fork());
    on("detail-delete", () => hooks.onDelete(this.#id));
  }

  setModel(model) {
    this.#spellings.setModel(model);
  }

  open(id) {
    return this.#hooks.attempt(async () => {
      this.#opening += 1;
      this.#id = id;
      this.#ids = [];
      this.#pageToken = "";
      byId("detail-text").textContent = "";
      byId("detail-title").textContent = `Session ${id}`;
      byId("session-detail").hidden = false;
      byId("detail-title").focus();
      await this.#loadPage();
    });
  }

  // Closes the view of a session that is gone.
  close(id) {
    if (this.#id !== id) return;
    this.#opening += 1;
    this.#id = "";
    byId("session-detail").hidden = true;
  }

  async #loadPage() {
    const opening = this.#opening;
    // Pressed twice, the button would bring a page twice.
    byId("detail-more").disabled = true;
    const page = await this.#api.getSession(this.#id, this.#pageToken)
      .finally(() => { byId("detail-more").disabled = false; });
    if (opening !== this.#opening) return;
    for (const id of page.token_ids ?? []) this.#ids.push(id);
    byId("detail-text").append(page.text ?? "");
    this.#pageToken = page.next_page_token ?? "";
    byId("detail-more").hidden = this.#pageToken === "";
    const position = count(page.session.position);
    byId("detail-facts").textContent = `${position} tokens` +
      (this.#ids.length < position ? `, ${this.#ids.length} shown` : "");
    byId("detail-position").value = this.#ids.length;
    byId("detail-position").max = position;
    await this.#showTokens(TOKENS);
  }

  #firstShown() {
    return Math.max(0, this.#ids.length - this.#window);
  }

  async #showTokens(window) {
    const opening = this.#opening;
    this.#window = window;
    const first = this.#firstShown();
    const ids = this.#ids.slice(first);
    const texts = await this.#spellings.of(ids);
    if (opening !== this.#opening) return;
    this.#view.clear();
    this.#view.append(ids.map((id, i) =>
      ({ id, text: visibleText(texts[i]), name: texts[i], top: [] })));
    byId("detail-older").hidden = first === 0;
  }

  #position() {
    return Number(byId("detail-position").value);
  }

  async #rewind() {
    const position = this.#position();
    const sure = await ask(`Rewind ${this.#id} to its first ${position} ` +
      "tokens? What stands behind them is lost.", "Rewind");
    if (!sure) return;
    await this.#api.rewindSession(this.#id, position);
    await this.#hooks.onChange();
    await this.open(this.#id);
  }

  async #fork() {
    const name = byId("detail-fork-id").value.trim();
    const { session } = await this.#api.forkSession(this.#id, name,
      this.#position());
    byId("detail-fork-id").value = "";
    await this.#hooks.onChange();
    await this.open(session.session_id);
  }
}
