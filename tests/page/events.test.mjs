import assert from "node:assert/strict";
import { test } from "node:test";

import { MusicReader, eventName } from "../../server/http/page/events.js";

function read(text) {
  const reader = new MusicReader();
  reader.push(text);
  reader.end();
  return reader;
}

const REMI = "Bar_None Position_1/16 Tempo%20Class_mid Tempo%20Value_20 " +
  "Position_1/16 Chord_C:maj Position_1/16 Note%20Velocity_16 Note%20On_60 " +
  "Note%20Duration_7 Bar_None Position_9/16 Note%20Velocity_31 " +
  "Note%20On_72 Note%20Duration_0";
// Velocity bins are 4 wide, durations 60 ticks, positions 120, bars 1920.
const REMI_NOTES = [{ pitch: 60, velocity: 64, start: 0, duration: 480 },
  { pitch: 72, velocity: 124, start: 1920 + 960, duration: 60 }];

test("REMI: a note has position, velocity, pitch and duration", () => {
  const { notes, tempos } = read(REMI);
  assert.deepEqual(notes, REMI_NOTES);
  assert.deepEqual(tempos, [{ tick: 0, bpm: 110 }]);
});

test("events cut anywhere are the same music", () => {
  for (let cut = 0; cut <= REMI.length; cut += 1) {
    const reader = new MusicReader();
    reader.push(REMI.slice(0, cut));
    reader.push(REMI.slice(cut));
    reader.end();
    assert.deepEqual(reader.notes, REMI_NOTES, `cut at ${cut}`);
  }
});

test("REMI: the classes of tempo begin at 30, 90 and 150", () => {
  const { tempos } = read("Bar_None Tempo%20Class_slow Tempo%20Value_0 " +
    "Position_5/16 Tempo%20Class_fast Tempo%20Value_59");
  assert.deepEqual(tempos, [{ tick: 0, bpm: 30 }, { tick: 480, bpm: 209 }]);
});

test("remi-xl: pitch, velocity and duration, in values and ticks", () => {
  const { notes } = read("Bar_None Beat_4 Note_Pitch_60 Note_Velocity_76 " +
    "Note_Duration_360 Beat_15 Note_Pitch_21 Note_Velocity_4 " +
    "Note_Duration_0");
  assert.deepEqual(notes, [
    { pitch: 60, velocity: 76, start: 480, duration: 360 },
    { pitch: 21, velocity: 4, start: 1800, duration: 60 }]);
});

test("musicautobot: quarters of a beat, xxsep waits", () => {
  const { notes } = read("xxbos xxpad n60 d4 n64 d8 xxsep d2 n67 d1 mt0");
  assert.deepEqual(notes.map(({ pitch, start, duration }) =>
    [pitch, start, duration]), [[60, 0, 480], [64, 0, 960], [67, 240, 120]]);
  assert.ok(notes.every(({ velocity }) => velocity === 80));
});

test("a note is there with its duration, and not before", () => {
  const reader = new MusicReader();
  reader.push("Bar_None Position_1/16 Note%20On_60 Note%20Velocity_16 ");
  assert.equal(reader.notes.length, 0);
  reader.push("Note%20Duration_7 ");
  assert.equal(reader.notes.length, 1);
});

test("what is not a note makes none", () => {
  for (const text of ["Note%20Duration_7", "Note%20On_60",
    "Note%20On_128 Note%20Duration_7", "Note%20On_x Note%20Duration_7",
    "Note_Pitch_60 Note_Duration_-1", "n60 xxsep d4", "n60 d0",
    "constructor_1 __proto___2 toString", "%E0%A4%A_1", ""]) {
    assert.deepEqual(read(text).notes, [], text);
  }
});

test("a duration ends one note only", () => {
  assert.equal(read("n60 d4 d4 Note%20Duration_7").notes.length, 1);
});

test("velocities stay in the range of a note that sounds", () => {
  const velocity = (text) => read(`${text} n60 d1`).notes[0].velocity;
  assert.equal(velocity("Note%20Velocity_32"), 127);
  assert.equal(velocity("Note%20Velocity_0"), 1);
  assert.equal(velocity("Note%20Velocity_x"), 80);
});

test("positions outside a bar, and tempos that no file can hold, are dropped",
  () => {
    const { notes, tempos } = read("Bar_None Beat_4 Beat_16 Position_0/16 " +
      "Position_x n60 d1 Tempo_3 Tempo_1001 Tempo_x Tempo_120");
    assert.equal(notes[0].start, 480);
    assert.deepEqual(tempos, [{ tick: 480, bpm: 120 }]);
  });

test("%XX in names are bytes of UTF-8; what is none stays", () => {
  assert.equal(eventName("Note%20On_60"), "Note On_60");
  assert.equal(eventName("100%25"), "100%");
  assert.equal(eventName("%C2%A0x"), "\u00a0x");
  assert.equal(eventName("%zz"), "%zz");
});
