// Notes from the event names that music models generate: REMI (Huang and Yang
// 2020), remi-xl of the Compound Word Transformer (Hsiao et al. 2021), and
// musicautobot. Times are in ticks; a bar has four beats in all three.

export const TICKS_PER_BEAT = 480;
export const TICKS_PER_BAR = 4 * TICKS_PER_BEAT;

// musicautobot counts quarters of a beat, and so does remi-xl's Beat.
const TICKS_PER_STEP = TICKS_PER_BEAT / 4;
// REMI's durations are steps of half that, from one on.
const REMI_DURATION = 60;
// REMI's velocities are 32 bins of the range up to 128.
const REMI_VELOCITY = 4;
// Where REMI's classes of tempo begin, in beats per minute.
const TEMPO_CLASSES = { slow: 30, mid: 90, fast: 150 };
// For events without velocities.
const DEFAULT_VELOCITY = 80;

// What an event does, by its name in front of the last "_". REMI's names have
// spaces, those of remi-xl have none, and their units differ.
const ACTIONS = {
  Bar: (reader) => reader.beginBar(),
  Position: (reader, value) => {
    const [index, count] = value.split("/").map(Number);
    reader.moveInBar((index - 1) / count * TICKS_PER_BAR);
  },
  Beat: (reader, value) => reader.moveInBar(value * TICKS_PER_STEP),
  "Note On": (reader, value) => reader.setPitch(value),
  Note_Pitch: (reader, value) => reader.setPitch(value),
  "Note Velocity": (reader, value) =>
    reader.setVelocity(value * REMI_VELOCITY),
  Note_Velocity: (reader, value) => reader.setVelocity(value),
  "Note Duration": (reader, value) =>
    reader.emit((Number(value) + 1) * REMI_DURATION),
  // As remi-xl's own writer has it, no note is without length.
  Note_Duration: (reader, value) =>
    reader.emit(Number(value) || REMI_DURATION),
  "Tempo Class": (reader, value) => reader.setTempoClass(value),
  "Tempo Value": (reader, value) => reader.setTempoInClass(value),
  Tempo: (reader, value) => reader.setTempo(value),
};

// An event's name as the vocabulary has it: in text its spaces and "%" are
// written %XX by bytes.
export function eventName(word) {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

// Reads events as they come. A note is complete, and is in `notes`, with its
// duration; events that make no sense where they stand change nothing.
export class MusicReader {
  // [{pitch, velocity, start, duration}]
  notes = [];
  // [{tick, bpm}]
  tempos = [];

  #word = "";
  #bar = -1;
  #now = 0;
  #pitch = null;
  #velocity = DEFAULT_VELOCITY;
  #tempoClass = null;
  // Whether the next duration of musicautobot's is a wait.
  #waiting = false;

  // Text, cut anywhere.
  push(text) {
    const words = (this.#word + text).split(/\s+/);
    this.#word = words.pop();
    for (const word of words) this.#take(word);
  }

  // The text so far ends with a whole event.
  end() {
    this.#take(this.#word);
    this.#word = "";
  }

  #take(word) {
    const name = eventName(word);
    const short = /^([nd])(\d+)$/.exec(name);
    if (name === "xxsep") this.#waiting = true;
    else if (short?.[1] === "n") this.setPitch(short[2]);
    else if (short?.[1] === "d") this.#takeSteps(Number(short[2]));
    else {
      const cut = name.lastIndexOf("_");
      const kind = name.slice(0, Math.max(cut, 0));
      if (Object.hasOwn(ACTIONS, kind)) {
        ACTIONS[kind](this, name.slice(cut + 1));
      }
    }
  }

  #takeSteps(steps) {
    if (this.#waiting) this.#now += steps * TICKS_PER_STEP;
    else this.emit(steps * TICKS_PER_STEP);
    this.#waiting = false;
  }

  beginBar() {
    this.#bar += 1;
    this.moveInBar(0);
  }

  moveInBar(ticks) {
    if (!(ticks >= 0 && ticks < TICKS_PER_BAR)) return;
    this.#now = Math.max(this.#bar, 0) * TICKS_PER_BAR + Math.floor(ticks);
  }

  setPitch(value) {
    const pitch = Number(value);
    this.#pitch = Number.isInteger(pitch) && pitch >= 0 && pitch <= 127
      ? pitch : null;
    this.#waiting = false;
  }

  setVelocity(value) {
    const velocity = Number(value);
    if (!Number.isInteger(velocity)) return;
    // A note-on of velocity 0 would be a note-off.
    this.#velocity = Math.min(127, Math.max(1, velocity));
  }

  emit(duration) {
    if (this.#pitch !== null && Number.isInteger(duration) && duration > 0) {
      this.notes.push({ pitch: this.#pitch, velocity: this.#velocity,
        start: this.#now, duration });
    }
    this.#pitch = null;
    this.#velocity = DEFAULT_VELOCITY;
  }

  setTempoClass(name) {
    this.#tempoClass = Object.hasOwn(TEMPO_CLASSES, name)
      ? TEMPO_CLASSES[name] : null;
  }

  setTempoInClass(value) {
    if (this.#tempoClass !== null) {
      this.setTempo(this.#tempoClass + Number(value));
    }
    this.#tempoClass = null;
  }

  setTempo(value) {
    const bpm = Number(value);
    // Slower than 4 beats a minute does not fit into a file's 24 bits.
    if (bpm >= 4 && bpm <= 1000) this.tempos.push({ tick: this.#now, bpm });
  }
}
