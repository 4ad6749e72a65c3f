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
  // How many of the last tokens are wanted, and the position of the first one
  // that is shown.
  #window = TOKENS;
  #first = 0;
  // Counts openings, and what is asked for tokens: what an older one brings is
  // dropped.
  #opening = 0;
  #asked = 0;

  // `hooks` are onContinue(id, text), onChange(), onDelete(id) and
  // attempt(action), which does something and shows its error.
  constructor(api, hooks) {
    this.#api = api;
    this.#hooks = hooks;
    this.#spellings = new Spellings(api);
    this.#view = new TokenView(byId("detail-tokens"), (token, index) => {
      byId("detail-position").value = this.#first + index + 1;
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
      this.#empty();
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

  // Nothing is left of the session before. What needs the text or a position
  // waits until they are those of the session that is opened.
  #empty() {
    this.#view.clear();
    for (const part of ["text", "facts"]) {
      byId(`detail-${part}`).textContent = "";
    }
    byId("detail-position").value = "";
    for (const button of ["more", "older"]) {
      byId(`detail-${button}`).hidden = true;
    }
    enableActions(false);
  }

  async #loadPage() {
    // Pressed twice, the button would bring a page twice.
    byId("detail-more").disabled = true;
    const page = await this.#ifStillOpen(
      this.#api.getSession(this.#id, this.#pageToken)
        .finally(() => { byId("detail-more").disabled = false; }));
    if (page === null) return;
    for (const id of page.token_ids ?? []) this.#ids.push(id);
    byId("detail-text").append(page.text ?? "");
    this.#pageToken = page.next_page_token ?? "";
    byId("detail-more").hidden = this.#pageToken === "";
    const position = count(page.session.position);
    byId("detail-facts").textContent = `${position} tokens` +
      (this.#ids.length < position ? `, ${this.#ids.length} shown` : "");
    byId("detail-position").value = this.#ids.length;
    byId("detail-position").max = position;
    enableActions(true);
    await this.#showTokens(TOKENS);
  }

  // What `answer` brings, null where another session was opened meanwhile: an
  // error is not that one's either.
  async #ifStillOpen(answer) {
    const opening = this.#opening;
    const isOpen = () => opening === this.#opening;
    try {
      const value = await answer;
      return isOpen() ? value : null;
    } catch (error) {
      if (isOpen()) throw error;
      return null;
    }
  }

  async #showTokens(window) {
    const asked = (this.#asked += 1);
    this.#window = window;
    const first = Math.max(0, this.#ids.length - window);
    const ids = this.#ids.slice(first);
    const texts = await this.#ifStillOpen(this.#spellings.of(ids));
    if (texts === null || asked !== this.#asked) return;
    this.#first = first;
    this.#view.clear();
    this.#view.append(ids.map((id, i) =>
      ({ id, text: visibleText(texts[i]), name: texts[i], top: [] })));
    this.#view.flush();
    byId("detail-older").hidden = first === 0;
  }

  #position() {
    const text = byId("detail-position").value.trim();
    // Number("") is 0: a field that was emptied would empty the session.
    if (text === "") throw new Error("Say how many tokens to keep.");
    return Number(text);
  }

  async #rewind() {
    const id = this.#id;
    const position = this.#position();
    const sure = await ask(`Rewind ${id} to its first ${position} ` +
      "tokens? What stands behind them is lost.", "Rewind");
    if (!sure) return;
    await this.#api.rewindSession(id, position);
    await this.#changed(id, id);
  }

  async #fork() {
    const id = this.#id;
    const name = byId("detail-fork-id").value.trim();
    const { session } = await this.#api.forkSession(id, name,
      this.#position());
    byId("detail-fork-id").value = "";
    await this.#changed(id, session.session_id);
  }

  // Opens `next` after a change of session `id`, unless another one has been
  // opened meanwhile.
  async #changed(id, next) {
    await this.#hooks.onChange();
    if (this.#id === id) await this.open(next);
  }
}

// All but deleting, which needs no text.
function enableActions(enabled) {
  for (const action of ["continue", "rewind", "fork"]) {
    byId(`detail-${action}`).disabled = !enabled;
  }
}
