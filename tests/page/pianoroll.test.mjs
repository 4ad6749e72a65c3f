import assert from "node:assert/strict";
import { test } from "node:test";

import { layout, pitchName, summary }
  from "../../server/http/page/pianoroll.js";

const note = (pitch, start, duration = 480) =>
  ({ pitch, start, duration, velocity: 64 });

test("pitches have their names, 60 is the middle C", () => {
  assert.equal(pitchName(60), "C4");
  assert.equal(pitchName(69), "A4");
  assert.equal(pitchName(0), "C-1");
  assert.equal(pitchName(127), "G9");
});

test("a summary counts notes and bars", () => {
  assert.equal(summary([]), "No notes yet");
  assert.equal(summary([note(60, 0)]), "1 note in 1 bar, from C4 to C4");
  assert.equal(summary([note(79, 1920), note(60, 0)]),
    "2 notes in 2 bars, from C4 to G5");
});

test("a note that sounds into a bar needs it", () => {
  assert.match(summary([note(60, 1440, 481)]), /2 bars/);
  assert.match(summary([note(60, 1440, 480)]), /1 bar,/);
});

test("all notes lie on the canvas", () => {
  const notes = [note(0, 0), note(127, 19000), note(60, 9600)];
  const { width, x, y, noteHeight } = layout(notes, 300);
  for (const { pitch, start, duration } of notes) {
    assert.ok(x(start) >= 0 && x(start + duration) <= width);
    assert.ok(y(pitch) >= 0 && y(pitch) + noteHeight <= 240);
  }
  assert.ok(y(127) < y(60) && y(60) < y(0));
});

test("the canvas fills its place, and grows with the bars up to a limit",
  () => {
    assert.equal(layout([note(60, 0)], 700).width, 700);
    assert.equal(layout([note(60, 19 * 1920)], 700).width, 20 * 80);
    assert.equal(layout([note(60, 9999 * 1920)], 700).width, 16000);
  });
