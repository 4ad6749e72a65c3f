// The music of a turn's events: a picture, sound, and a file to download.

import { byId, oncePerFrame } from "./dom.js";
import { MusicReader } from "./events.js";
import { midiFile } from "./midi.js";
import { drawNotes, summary } from "./pianoroll.js";
import { Player } from "./player.js";

export class Music {
  #reader = new MusicReader();
  #draw = oncePerFrame(() => this.#drawNow());
  #player = new Player(() => this.#drawNow());

  constructor() {
    byId("download-midi").addEventListener("click", () => this.#download());
    byId("play-music").addEventListener("click", () => this.#playOrStop());
    matchMedia("(prefers-color-scheme: dark)")
      .addEventListener("change", this.#draw);
    addEventListener("resize", this.#draw);
  }

  show() {
    byId("music").hidden = false;
    this.#draw();
  }

  clear() {
    this.#player.stop();
    this.#reader = new MusicReader();
    this.#draw();
  }

  // Text of events, prompts included, cut anywhere.
  push(text) {
    this.#reader.push(text);
    this.#draw();
  }

  // The last event is whole; all is drawn at once.
  end() {
    this.#reader.end();
    this.#drawNow();
  }

  #drawNow() {
    if (byId("music").hidden) return;
    drawNotes(byId("roll"), this.#reader.notes);
    byId("roll-summary").textContent = summary(this.#reader.notes);
    const empty = this.#reader.notes.length === 0;
    byId("download-midi").disabled = empty;
    byId("play-music").disabled = empty;
    byId("play-music").textContent = this.#player.playing ? "Stop" : "Play";
  }

  #playOrStop() {
    if (this.#player.playing) {
      this.#player.stop();
    } else {
      this.#player.play(this.#reader.notes, this.#reader.tempos);
      this.#drawNow();
    }
  }

  #download() {
    const { notes, tempos } = this.#reader;
    const file = new Blob([midiFile(notes, tempos)], { type: "audio/midi" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = "music.mid";
    link.click();
    // The browser has the file's bytes once the click is handled.
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}
