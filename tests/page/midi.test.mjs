import assert from "node:assert/strict";
import { test } from "node:test";

import { midiFile, variableLength } from "../../server/http/page/midi.js";

const hex = (bytes) => Array.from(bytes, (byte) =>
  byte.toString(16).padStart(2, "0")).join(" ");
const note = (pitch, start, duration, velocity = 64) =>
  ({ pitch, start, duration, velocity });

// Header of format 0 with one track and 480 ticks a beat, then the track.
const file = (length, track) =>
  "4d 54 68 64 00 00 00 06 00 00 00 01 01 e0 " +
  `4d 54 72 6b 00 00 00 ${length} 00 ff 58 04 04 02 18 08 ${track} 00 ff 2f 00`;
// 120 beats a minute are 500,000 microseconds a beat.
const TEMPO_120 = "00 ff 51 03 07 a1 20";

test("quantities of variable length are those of the specification", () => {
  const table = { 0x00: "00", 0x40: "40", 0x7f: "7f", 0x80: "81 00",
    0x2000: "c0 00", 0x3fff: "ff 7f", 0x4000: "81 80 00",
    0x100000: "c0 80 00", 0x1fffff: "ff ff 7f", 0x200000: "81 80 80 00",
    0x8000000: "c0 80 80 00", 0xfffffff: "ff ff ff 7f" };
  for (const [value, bytes] of Object.entries(table)) {
    assert.equal(hex(variableLength(Number(value))), bytes);
  }
});

test("no notes are a file with a tempo", () => {
  assert.equal(hex(midiFile([], [])), file("13", TEMPO_120));
});

test("a note is on for its duration", () => {
  assert.equal(hex(midiFile([note(60, 0, 480)], [])),
    file("1c", `${TEMPO_120} 00 90 3c 40 83 60 80 3c 00`));
});

test("times are those since the event before", () => {
  // On at 120 (78), off at 360 (240 later: 81 70).
  assert.equal(hex(midiFile([note(72, 120, 240, 1)], [])),
    file("1c", `${TEMPO_120} 78 90 48 01 81 70 80 48 00`));
});

test("a note ends before the next begins at its tick", () => {
  assert.equal(hex(midiFile([note(62, 480, 60), note(60, 0, 480)], [])),
    file("24", `${TEMPO_120} 00 90 3c 40 83 60 80 3c 00 ` +
      "00 90 3e 40 3c 80 3e 00"));
});

test("a key that is struck again sounds once at a time", () => {
  // The first, of 960 ticks, ends where the second begins.
  assert.equal(hex(midiFile([note(60, 0, 960), note(60, 480, 120)], [])),
    file("24", `${TEMPO_120} 00 90 3c 40 83 60 80 3c 00 ` +
      "00 90 3c 40 78 80 3c 00"));
});

test("of notes of a key struck together the longest stays", () => {
  assert.equal(hex(midiFile([note(60, 0, 480), note(60, 0, 120)], [])),
    hex(midiFile([note(60, 0, 480)], [])));
});

test("tempos stand where they are", () => {
  // 60 a minute: 1,000,000 (0f 42 40); 100: 600,000 (09 27 c0).
  const tempos = [{ tick: 0, bpm: 60 }, { tick: 1920, bpm: 100 }];
  assert.equal(hex(midiFile([], tempos)), file("1b",
    "00 ff 51 03 0f 42 40 8f 00 ff 51 03 09 27 c0"));
});

test("a first tempo that comes late has the usual one before it", () => {
  assert.equal(hex(midiFile([], [{ tick: 1920, bpm: 100 }])), file("1b",
    `${TEMPO_120} 8f 00 ff 51 03 09 27 c0`));
});

test("long music has its length in the track's header", () => {
  const notes = Array.from({ length: 20000 }, (_, i) =>
    note(i % 128, 60 * i, 60));
  const bytes = midiFile(notes, []);
  const view = new DataView(bytes.buffer);
  assert.equal(view.getUint32(18), bytes.length - 22);
  // Each note: on 4 bytes, off 4 bytes.
  assert.equal(bytes.length, 22 + 8 + 7 + 20000 * 8 + 4);
});
