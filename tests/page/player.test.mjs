import assert from "node:assert/strict";
import { test } from "node:test";

import { frequency, timed } from "../../server/http/page/player.js";

const note = (start, duration) => ({ pitch: 60, velocity: 64, start, duration });
const seconds = (notes, tempos) =>
  timed(notes, tempos).map(({ begin, end }) => [begin, end]);

test("a beat takes half a second until a tempo says otherwise", () => {
  assert.deepEqual(seconds([note(0, 480), note(960, 240)], []),
    [[0, 0.5], [1, 1.25]]);
});

test("a tempo counts from its tick on, also within a note", () => {
  const tempos = [{ tick: 480, bpm: 60 }, { tick: 960, bpm: 240 }];
  assert.deepEqual(seconds([note(0, 480), note(480, 480), note(480, 960)],
    tempos), [[0, 0.5], [0.5, 1.5], [0.5, 1.75]]);
});

test("a tempo at the beginning is the first", () => {
  assert.deepEqual(seconds([note(480, 480)], [{ tick: 0, bpm: 60 }]), [[1, 2]]);
});

test("tempos and notes may come in any order", () => {
  const tempos = [{ tick: 960, bpm: 240 }, { tick: 480, bpm: 60 }];
  assert.deepEqual(seconds([note(960, 480), note(0, 480)], tempos),
    [[0, 0.5], [1.5, 1.75]]);
});

test("what sounds keeps pitch and velocity", () => {
  assert.deepEqual(timed([note(0, 480)], []),
    [{ pitch: 60, velocity: 64, begin: 0, end: 0.5 }]);
});

test("pitches are of equal temperament, A4 is 440 Hz", () => {
  assert.equal(frequency(69), 440);
  assert.equal(frequency(57), 220);
  assert.ok(Math.abs(frequency(60) - 261.6256) < 1e-4);
});
