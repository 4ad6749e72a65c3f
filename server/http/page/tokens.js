// Text as tokens, each coloured by its probability. The whole text is one stop
// of the Tab key; arrow keys, the pointer and taps choose a token.

import { element, oncePerFrame } from "./dom.js";
import { percent, probabilityClass, visibleText } from "./probability.js";

// How near the end the text has to be scrolled to follow new tokens, in pixels.
const FOLLOW = 40;

// Tokens of a block at most. A browser lays a block out as a whole, so that
// tokens behind a long one would cost more and more: a block ends with its line,
// or, where a text has no line breaks, here.
const BLOCK = 500;

let views = 0;

export class TokenView {
  #place;
  #onChoose;
  #spans = [];
  #tokens = [];
  #waiting = [];
  // The element that takes the next token; null for a new one.
  #block = null;
  #chosen = -1;
  #prefix = `token-${(views += 1)}-`;
  #draw = oncePerFrame(() => this.flush());

  // `onChoose(token, index)` is told what the pointer or the keys are on.
  constructor(place, onChoose) {
    this.#place = place;
    this.#onChoose = onChoose;
    place.addEventListener("pointerover", (event) => this.#point(event));
    place.addEventListener("click", (event) => this.#point(event));
    place.addEventListener("keydown", (event) => this.#press(event));
    place.addEventListener("focus", () => {
      if (this.#chosen < 0 && this.#spans.length > 0) this.choose(0);
    });
  }

  clear() {
    this.#waiting = [];
    this.#tokens = [];
    this.#spans = [];
    this.#block = null;
    this.#chosen = -1;
    this.#place.removeAttribute("aria-activedescendant");
    this.#place.replaceChildren();
  }

  // Tokens are {id, text, name, logprob, top}; they appear with the next frame,
  // or with `flush`.
  append(tokens) {
    for (const token of tokens) this.#waiting.push(token);
    this.#draw();
  }

  // Text that was not generated.
  appendPrompt(text) {
    const lastLine = text.lastIndexOf("\n") + 1;
    this.append([{ prompt: text.slice(0, lastLine) },
      { prompt: text.slice(lastLine) }].filter(({ prompt }) => prompt !== ""));
  }

  choose(index) {
    if (index < 0 || index >= this.#spans.length) return;
    this.#spans[this.#chosen]?.setAttribute("aria-selected", "false");
    this.#chosen = index;
    const span = this.#spans[index];
    span.id = this.#prefix + index;
    span.setAttribute("aria-selected", "true");
    span.setAttribute("aria-label", spoken(this.#tokens[index]));
    this.#place.setAttribute("aria-activedescendant", span.id);
    this.#onChoose(this.#tokens[index], index);
  }

  // Shows at once what waits for the next frame.
  flush() {
    if (this.#waiting.length === 0) return;
    const place = this.#place;
    const follow =
      place.scrollHeight - place.scrollTop - place.clientHeight < FOLLOW;
    for (const token of this.#waiting) this.#add(token);
    this.#waiting = [];
    if (follow) place.scrollTop = place.scrollHeight;
  }

  #add(token) {
    if (this.#block === null) {
      this.#block = element("div");
      this.#place.append(this.#block);
    }
    this.#block.append(this.#spanOf(token));
    const text = token.prompt ?? token.text;
    const full = this.#block.childElementCount >= BLOCK;
    if (full || text.endsWith("\n")) this.#block = null;
  }

  #spanOf(token) {
    if (token.prompt !== undefined) {
      return element("span", { class: "prompt" }, token.prompt);
    }
    const kind = token.text === "" ? " empty" : "";
    // A screen reader does not say spaces.
    const blank = token.text.trim() === "";
    const span = element("span", { role: "option", "aria-selected": "false",
      "aria-label": blank ? visibleText(token.name) : null,
      class: `token ${probabilityClass(token.logprob)}${kind}` }, token.text);
    span.tokenIndex = this.#tokens.length;
    this.#tokens.push(token);
    this.#spans.push(span);
    return span;
  }

  #point(event) {
    const index = event.target.tokenIndex;
    if (index !== undefined && index !== this.#chosen) this.choose(index);
  }

  #press(event) {
    const last = this.#spans.length - 1;
    const targets = {
      ArrowRight: () => Math.min(last, this.#chosen + 1),
      ArrowLeft: () => Math.max(0, this.#chosen - 1),
      ArrowDown: () => this.#lineBeside(1),
      ArrowUp: () => this.#lineBeside(-1),
      Home: () => 0,
      End: () => last,
    };
    if (targets[event.key] === undefined || last < 0) return;
    event.preventDefault();
    this.choose(targets[event.key]());
    this.#spans[this.#chosen].scrollIntoView({ block: "nearest" });
  }

  // The token in the next line down (1) or up (-1) that is nearest to being
  // above or below the chosen one.
  #lineBeside(direction) {
    const from = this.#spans[Math.max(0, this.#chosen)];
    let best = Math.max(0, this.#chosen);
    let line = null;
    for (let i = best + direction; i >= 0 && i < this.#spans.length;
      i += direction) {
      const span = this.#spans[i];
      if (span.offsetTop === from.offsetTop) continue;
      line ??= span.offsetTop;
      if (span.offsetTop !== line) break;
      const distance = (at) =>
        Math.abs(this.#spans[at].offsetLeft - from.offsetLeft);
      if (best === Math.max(0, this.#chosen) || distance(i) < distance(best)) {
        best = i;
      }
    }
    return best;
  }
}

function spoken(token) {
  const probability = token.logprob === undefined
    ? "" : `, ${percent(token.logprob)}`;
  return `${visibleText(token.name)}${probability}`;
}

// Describes a token: its text, id and probability, and what else was likely.
export function describeToken(place, token, index) {
  const facts = element("p", {},
    element("b", { class: "spelling" }, visibleText(token.name)),
    ` token ${index + 1}`,
    token.id === null ? ", held back before" : `, id ${token.id}`,
    token.logprob === undefined ? "" : `, ${percent(token.logprob)}`);
  const rows = token.top.map(({ text, logprob }) => {
    const bar = element("span", { class: "bar" });
    bar.style.width = `${100 * Math.exp(logprob)}%`;
    return element("tr", text === token.name ? { class: "taken" } : {},
      element("th", { scope: "row", class: "spelling" }, visibleText(text)),
      element("td", {}, percent(logprob)),
      element("td", { class: "bars" }, bar));
  });
  const table = element("table", { class: "alternatives" },
    element("caption", {}, "Alternatives"), element("tbody", {}, ...rows));
  place.replaceChildren(facts, ...(rows.length > 0 ? [table] : []));
}
