// Standard MIDI Files (MIDI Manufacturers Association, RP-001), format 0: one
// track with everything.

import { TICKS_PER_BEAT } from "./events.js";

export const DEFAULT_BPM = 120;  // until a tempo comes

// A quantity of 7 bits a byte, all bytes but the last with their top bit set;
// in [0, 2^28).
export function variableLength(value) {
  const bytes = [value & 0x7f];
  for (let rest = value >> 7; rest > 0; rest >>= 7) {
    bytes.unshift(0x80 | (rest & 0x7f));
  }
  return bytes;
}

// The bytes of a file. Notes are {pitch, velocity, start, duration}, tempos
// {tick, bpm}, as events.js reads them.
export function midiFile(notes, tempos) {
  const events = tempoEvents(tempos);
  for (const { pitch, velocity, start, end } of withoutOverlaps(notes)) {
    events.push({ tick: start, order: 2, bytes: [0x90, pitch, velocity] },
      { tick: end, order: 1, bytes: [0x80, pitch, 0] });
  }
  // At one tick tempos come first, and notes end before notes begin.
  events.sort((a, b) => a.tick - b.tick || a.order - b.order);
  // Four quarters a bar, 24 clocks a beat.
  const track = [0x00, 0xff, 0x58, 0x04, 0x04, 0x02, 0x18, 0x08];
  let now = 0;
  for (const { tick, bytes } of events) {
    track.push(...variableLength(tick - now), ...bytes);
    now = tick;
  }
  track.push(0x00, 0xff, 0x2f, 0x00);
  const header = [...bigEndian(0, 2), ...bigEndian(1, 2),
    ...bigEndian(TICKS_PER_BEAT, 2)];
  return new Uint8Array([...chunk("MThd", header), ...chunk("MTrk", track)]);
}

function tempoEvents(tempos) {
  const all = tempos.some(({ tick }) => tick === 0)
    ? tempos : [{ tick: 0, bpm: DEFAULT_BPM }, ...tempos];
  return all.map(({ tick, bpm }) => ({ tick, order: 0,
    bytes: [0xff, 0x51, 0x03, ...bigEndian(Math.round(6e7 / bpm), 3)] }));
}

// Notes with `end`, by their start. A key is one note at a time: what still
// sounds when it is struck again ends there; of notes struck together the
// longest stays.
function withoutOverlaps(notes) {
  const sorted = notes
    .map((note) => ({ ...note, end: note.start + note.duration }))
    .sort((a, b) => a.start - b.start || a.end - b.end);
  const sounding = new Map();
  for (const note of sorted) {
    const before = sounding.get(note.pitch);
    if (before !== undefined) before.end = Math.min(before.end, note.start);
    sounding.set(note.pitch, note);
  }
  return sorted.filter(({ start, end }) => end > start);
}

function bigEndian(value, count) {
  return Array.from({ length: count }, (_, i) =>
    (value >> (8 * (count - 1 - i))) & 0xff);
}

function chunk(name, bytes) {
  return [...Array.from(name, (letter) => letter.charCodeAt(0)),
    ...bigEndian(bytes.length, 4), ...bytes];
}
