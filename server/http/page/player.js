// Notes as sound, by the browser's own synthesiser (Web Audio).

import { TICKS_PER_BEAT } from "./events.js";
import { DEFAULT_BPM } from "./midi.js";

// Seconds of notes that are handed over at a time: a long piece would keep
// thousands of oscillators.
const AHEAD = 1;
const ATTACK = 0.01;
const RELEASE = 0.05;
const LOUDEST = 0.25;

// Notes {pitch, velocity, start, duration} and tempos {tick, bpm} of events.js
// as {pitch, velocity, begin, end} in seconds, by their beginnings.
export function timed(notes, tempos) {
  const changes = [{ tick: 0, bpm: DEFAULT_BPM }, ...tempos]
    .sort((a, b) => a.tick - b.tick);
  const after = ({ tick, bpm, seconds }, later) =>
    seconds + (later - tick) * 60 / (bpm * TICKS_PER_BEAT);
  changes[0].seconds = 0;
  for (let i = 1; i < changes.length; i += 1) {
    changes[i] = { ...changes[i],
      seconds: after(changes[i - 1], changes[i].tick) };
  }
  const at = (tick) =>
    after(changes.findLast((change) => change.tick <= tick), tick);
  return notes.map(({ pitch, velocity, start, duration }) =>
    ({ pitch, velocity, begin: at(start), end: at(start + duration) }))
    .sort((a, b) => a.begin - b.begin);
}

// Hertz of a pitch: A4, 69, is 440.
export function frequency(pitch) {
  return 440 * 2 ** ((pitch - 69) / 12);
}

export class Player {
  #audio = null;
  #timer = null;
  #notes = [];  // that are still to come
  #zero = 0;    // the audio's time at which the first begins
  #onEnd;

  // `onEnd`: called when the last note has ended, and by stop().
  constructor(onEnd) {
    this.#onEnd = onEnd;
  }

  get playing() { return this.#audio !== null; }

  // Plays from the first note on, without the silence before it.
  play(notes, tempos) {
    this.stop();
    this.#notes = timed(notes, tempos);
    if (this.#notes.length === 0) return;
    const end = this.#notes.reduce((latest, note) =>
      Math.max(latest, note.end), 0);
    this.#audio = new AudioContext();
    const together = this.#audio.createDynamicsCompressor();
    together.connect(this.#audio.destination);
    this.#zero = this.#audio.currentTime + 0.1 - this.#notes[0].begin;
    const step = () => {
      const now = this.#audio.currentTime - this.#zero;
      while (this.#notes.length > 0 && this.#notes[0].begin < now + AHEAD) {
        this.#sound(this.#notes.shift(), together);
      }
      if (now > end + RELEASE) this.stop();
    };
    this.#timer = setInterval(step, 200);
    step();
  }

  stop() {
    if (!this.playing) return;
    clearInterval(this.#timer);
    this.#audio.close();
    this.#audio = null;
    this.#onEnd();
  }

  #sound({ pitch, velocity, begin, end }, output) {
    const oscillator = this.#audio.createOscillator();
    oscillator.type = "triangle";
    oscillator.frequency.value = frequency(pitch);
    const volume = this.#audio.createGain();
    const from = Math.max(0, this.#zero + begin);
    const until = Math.max(this.#zero + end, from + ATTACK);
    volume.gain.setValueAtTime(0, from);
    volume.gain.linearRampToValueAtTime(LOUDEST * velocity / 127,
      from + ATTACK);
    volume.gain.setTargetAtTime(0, until, RELEASE / 3);
    oscillator.connect(volume).connect(output);
    oscillator.start(from);
    oscillator.stop(until + RELEASE);
  }
}
