// The playground: turns of one session, shown as they come.

import { curlCommand, grpcurlCommand, pythonProgram } from "./copy.js";
import { byId, copyText, element, showError } from "./dom.js";
import { ParameterForm } from "./form.js";
import { pieces, readMidiPrompt } from "./midi_prompt.js";
import { Music } from "./music.js";
import { count } from "./rates.js";
import { newRequestId, requestOf } from "./request.js";
import { patiently } from "./retry.js";
import { settleSession } from "./settle.js";
import { TokenView, describeToken } from "./tokens.js";
import { TurnClock } from "./clock.js";
import { cachedText, runTurn } from "./turn.js";

const COMMANDS = { curl: curlCommand, python: pythonProgram,
  grpcurl: grpcurlCommand };

export class Playground {
  #api;
  #onTurn;
  #form = new ParameterForm();
  #music = new Music();
  #view;
  // Aborts the turn that runs; null while none does.
  #abort = null;
  // Resolves when that turn has ended.
  #ended = Promise.resolve();
  // Counts sessions that were asked to be opened: the last one is.
  #opening = 0;
  // The session whose text is shown; "" for none.
  #session = "";
  // Whether nobody but this page knows that session.
  #own = false;
  #musical = false;
  #limits = {};
  // The MIDI file that the prompt was made of: {text, ids}; null for none.
  #midi = null;

  // `onTurn(clock)` is told of every turn that ended.
  constructor(api, onTurn) {
    this.#api = api;
    this.#onTurn = onTurn;
    this.#view = new TokenView(byId("output"), (token, index) =>
      describeToken(byId("token-panel"), token, index));
    drawLegend();
    this.#listen();
  }

  // `model` is the `txl` object of GET /v1/models.
  setModel(model) {
    this.#form.setModel(model);
    this.#musical = model.vocabulary_kind === "events";
    this.#limits = model.limits ?? {};
    byId("midi-part").hidden = !this.#musical;
    if (this.#musical) this.#music.show();
  }

  // Shows a session's text, to be continued. A turn that runs is stopped
  // first; one of this very session goes on, for its text is the newer one.
  async openSession(id, text) {
    const opening = (this.#opening += 1);
    if (this.#abort !== null && id === this.#session) return this.#name(id);
    this.#abort?.abort();
    await this.#ended;
    if (opening !== this.#opening) return;
    if (id !== this.#session) this.#leaveSession();
    this.#name(id);
    this.#clear();
    this.#showPrompt(text);
    this.#showAll();
    this.#enable();
    byId("continue").focus();
  }

  // Makes a MIDI file the prompt of a new text, and shows its music.
  async #openMidi(file) {
    const opening = (this.#opening += 1);
    const late = () => opening !== this.#opening || this.#abort !== null;
    if (late()) return;
    this.#form.mark(null);
    this.#say(`Reading ${file.name}…`);
    try {
      const midi = await readMidiPrompt(this.#api, file, this.#limits);
      if (late()) return;
      this.#newText();
      this.#midi = midi;
      byId("prompt").value = midi.text;
      this.#music.push(midi.text);
      this.#music.end();
      this.#say(midi.said);
    } catch (error) {
      if (!late()) this.#fail(error);
    }
  }

  #newText() {
    byId("session_id").value = "";
    this.#leaveSession();
    this.#clear();
  }

  #listenToFiles() {
    byId("midi").addEventListener("change", ({ target }) => {
      const [file] = target.files;
      if (file !== undefined) this.#openMidi(file);
      // The same file, changed, can be chosen again.
      target.value = "";
    });
    const place = byId("playground-part");
    const isFile = ({ dataTransfer }) => dataTransfer.types.includes("Files");
    place.addEventListener("dragover", (event) => {
      if (isFile(event)) event.preventDefault();
    });
    place.addEventListener("drop", (event) => {
      if (!isFile(event)) return;
      event.preventDefault();
      this.#openMidi(event.dataTransfer.files[0]);
    });
  }

  #listen() {
    this.#listenToFiles();
    byId("turn-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const prompt = byId("prompt").value;
      this.#start(prompt === "" ? null : prompt, true);
    });
    byId("prompt").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        byId("turn-form").requestSubmit();
      }
    });
    byId("continue").addEventListener("click", () => this.#start(null, false));
    byId("stop").addEventListener("click", () => this.#abort?.abort());
    byId("clear").addEventListener("click", () => {
      this.#newText();
      byId("prompt").focus();
    });
    addEventListener("pagehide", (event) => {
      if (!event.persisted) this.#leaveSession();
    });
    byId("session_id").addEventListener("input", () => this.#enable());
    byId("use-seed").addEventListener("click", () => {
      byId("seed").value = byId("seed-shown").textContent;
    });
    for (const button of document.querySelectorAll("[data-copy]")) {
      button.addEventListener("click", () => this.#copy(button.dataset.copy));
    }
  }

  // Runs a turn, unless one runs. With `anew` a session that is the page's own
  // is replaced.
  #start(prompt, anew) {
    if (this.#abort === null) this.#ended = this.#run(prompt, anew);
  }

  async #run(prompt, anew) {
    this.#abort = new AbortController();
    this.#enable();
    showError(byId("turn-error"), null);
    this.#form.mark(null);
    const clock = new TurnClock();
    try {
      // What is wrong with a field is said before a session is made.
      this.#request(prompt, null);
      await this.#enterSession(anew);
      const request = this.#request(await this.#feedMidi(prompt),
        newRequestId());
      await this.#stream(request, prompt ?? "", clock);
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#abort = null;
      this.#enable();
      this.#onTurn(clock);
    }
  }

  #request(prompt, requestId) {
    const { fields, defaults } = this.#form.read();
    return requestOf(fields, defaults,
      { prompt, requestId, sessionId: this.#session });
  }

  // Afterwards #session is the one that the turn is to run on.
  async #enterSession(anew) {
    const named = byId("session_id").value.trim();
    if (this.#session !== "" && (named === this.#session ||
      (named === "" && this.#own && !anew))) return;
    this.#leaveSession();
    this.#clear();
    this.#say("Making a session…");
    const signal = this.#abort.signal;
    try {
      const session = await patiently(() => this.#api.createSession(named),
        { signal, onWait: this.#sayWait });
      this.#session = session.session_id;
    } catch (error) {
      // A session that is there already is as good.
      if (named === "" || error.status !== 409) throw error;
      this.#session = named;
    }
    this.#own = named === "";
    signal.throwIfAborted();
  }

  // What a turn takes of a prompt: the last ids of a MIDI file. Those before
  // are fed to the session.
  async #feedMidi(prompt) {
    if (prompt === null || prompt !== this.#midi?.text) return prompt;
    const parts = pieces(this.#midi.ids, count(this.#limits.max_prompt_tokens));
    const signal = this.#abort.signal;
    for (const part of parts.slice(0, -1)) {
      await patiently(() => this.#api.append(this.#session, part),
        { signal, onWait: this.#sayWait });
      signal.throwIfAborted();
    }
    return parts.at(-1);
  }

  // The session is one that the user has named.
  #name(id) {
    byId("session_id").value = id;
    this.#session = id;
    this.#own = false;
  }

  // A session without a name of the user's would only wait for its end.
  #leaveSession() {
    if (this.#own) this.#api.deleteSession(this.#session).catch(() => {});
    this.#session = "";
    this.#own = false;
  }

  async #stream(request, prompt, clock) {
    const signal = this.#abort.signal;
    let tokens = 0;
    this.#say("Waiting for the server…");
    try {
      const turn = runTurn(this.#api, request, signal, {
        onWait: this.#sayWait,
        onStart: ({ seed }) => {
          this.#showPrompt(prompt);
          this.#showSeed(seed);
          this.#say("Generating…");
        },
        onTokens: (fresh) => {
          tokens += fresh.filter(({ id }) => id !== null).length;
          clock.tokens(fresh.length);
          this.#view.append(fresh);
          if (this.#musical) this.#hear(fresh);
        },
      });
      // Who is told of the end finds the whole text.
      const { finishReason, usage } = await turn.finally(() => this.#showAll());
      const why = finishReason === "length" ? "the length asked for"
        : "the text's end";
      this.#say(`Ended at ${why}: ${clock.summary()}${cachedText(usage)}.`);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
      await settleSession(this.#api, request, tokens);
      this.#say(`Stopped: ${clock.summary()}.`);
    }
  }

  #showAll() {
    this.#view.flush();
    this.#music.end();
  }

  #hear(tokens) {
    for (const token of tokens) this.#music.push(token.text);
  }

  #fail(error) {
    this.#say(error.name === "AbortError" ? "Stopped." : "");
    if (error.name === "AbortError") return;
    showError(byId("turn-error"), error);
    this.#form.mark(error.param ?? null);
  }

  #showPrompt(text) {
    if (text === "") return;
    this.#view.appendPrompt(text);
    if (!this.#musical) return;
    this.#music.push(text);
    this.#music.end();
  }

  #showSeed(seed) {
    byId("seed-line").hidden = seed === null;
    byId("seed-shown").textContent = seed ?? "";
  }

  #clear() {
    this.#view.clear();
    this.#music.clear();
    byId("token-panel").replaceChildren();
    byId("seed-line").hidden = true;
    showError(byId("turn-error"), null);
    this.#say("");
    this.#enable();
  }

  #say(text) {
    byId("turn-status").textContent = text;
  }

  #sayWait = (message, milliseconds) => this.#say(
    `${message} Trying again in ${(milliseconds / 1e3).toFixed(1)} s.`);

  #enable() {
    const running = this.#abort !== null;
    const named = byId("session_id").value.trim() !== "";
    byId("generate").disabled = running;
    byId("continue").disabled = running || !(named || this.#own);
    byId("clear").disabled = running;
    byId("midi").disabled = running;
    byId("stop").disabled = !running;
  }

  async #copy(language) {
    const command = byId("command");
    const status = byId("copy-status");
    try {
      const { fields, defaults } = this.#form.read();
      const prompt = byId("prompt").value;
      const request = requestOf(fields, defaults, { prompt: prompt || null,
        sessionId: byId("session_id").value.trim() });
      command.textContent = COMMANDS[language](this.#api.base, request,
        this.#api.key !== "");
      command.hidden = false;
      const copied = await copyText(command.textContent, command);
      status.textContent = copied ? "Copied."
        : "Selected: this browser copies by its own key only.";
    } catch (error) {
      status.textContent = "";
      this.#fail(error);
    }
  }
}

function drawLegend() {
  byId("legend").replaceChildren(...Array.from({ length: 10 }, (_, tenth) =>
    element("span", { class: `token p${tenth}` },
      `${10 * tenth}–${10 * tenth + 10}`)), " %");
}
