// Notes drawn on a canvas: time from left to right, pitch upwards.

import { TICKS_PER_BAR } from "./events.js";

const HEIGHT = 240;
const BAR_WIDTH = 80;
// Browsers refuse canvases that are much wider.
const MAX_WIDTH = 16000;
const MARGIN = 2;

// Where things are drawn, in CSS pixels: {width, bars, x(tick), y(pitch),
// noteHeight}. All notes fit; bars keep their width until the canvas is too
// wide.
export function layout(notes, leastWidth) {
  const end = notes.reduce((latest, { start, duration }) =>
    Math.max(latest, start + duration), 0);
  const bars = Math.max(1, Math.ceil(end / TICKS_PER_BAR));
  const width = Math.min(MAX_WIDTH, Math.max(leastWidth, bars * BAR_WIDTH));
  // Two octaves at least, for one note alone would fill the canvas.
  const low = notes.reduce((least, { pitch }) => Math.min(least, pitch), 48);
  const high = notes.reduce((most, { pitch }) => Math.max(most, pitch), 72);
  const noteHeight = HEIGHT / (high - low + 1 + 2 * MARGIN);
  return { width, bars, noteHeight,
    x: (tick) => tick / (bars * TICKS_PER_BAR) * width,
    y: (pitch) => (high + MARGIN - pitch) * noteHeight };
}

// "12 notes in 3 bars, from C4 to G5"
export function summary(notes) {
  if (notes.length === 0) return "No notes yet";
  const { bars } = layout(notes, 0);
  const pitches = notes.map((note) => note.pitch).sort((a, b) => a - b);
  const some = (number, name) => `${number} ${name}${number === 1 ? "" : "s"}`;
  return `${some(notes.length, "note")} in ${some(bars, "bar")}, from ` +
    `${pitchName(pitches[0])} to ${pitchName(pitches.at(-1))}`;
}

// "C4" is the middle C, 60.
export function pitchName(pitch) {
  const names = ["C", "C♯", "D", "D♯", "E", "F", "F♯", "G", "G♯", "A", "A♯",
    "B"];
  return names[pitch % 12] + (Math.floor(pitch / 12) - 1);
}

export function drawNotes(canvas, notes) {
  const place = layout(notes, canvas.parentElement.clientWidth);
  const scale = Math.min(devicePixelRatio, 32000 / place.width);
  canvas.width = place.width * scale;
  canvas.height = HEIGHT * scale;
  canvas.style.width = `${place.width}px`;
  canvas.style.height = `${HEIGHT}px`;
  canvas.setAttribute("aria-label", `Piano roll: ${summary(notes)}`);
  const context = canvas.getContext("2d");
  const colors = getComputedStyle(canvas);
  context.scale(scale, scale);
  context.fillStyle = colors.getPropertyValue("--line");
  for (let bar = 1; bar < place.bars; bar += 1) {
    context.fillRect(place.x(bar * TICKS_PER_BAR), 0, 1, HEIGHT);
  }
  context.fillStyle = colors.getPropertyValue("--accent");
  for (const { pitch, velocity, start, duration } of notes) {
    // Loud notes are dense ones.
    context.globalAlpha = 0.4 + 0.6 * velocity / 127;
    // A gap shows where one note ends and the next of its pitch begins.
    const width = Math.max(1, place.x(duration) - 1);
    context.fillRect(place.x(start), place.y(pitch), width,
      Math.max(1, place.noteHeight - 1));
  }
}
