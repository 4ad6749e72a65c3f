// Figures of a server's status: GetServerStatusResponse as JSON, in which int64
// are strings, durations are "12.5s" and what is 0 may be absent.

// Kinds of rows of a step, by the field that counts them.
export const ROW_KINDS = { rows_decode: "decoding", rows_prefill: "prompts",
  rows_score: "scoring", rows_rebuild: "rebuilding" };

// Seconds of a duration.
export function seconds(duration) {
  return duration === undefined ? 0 : Number.parseFloat(duration);
}

export function count(value) {
  return Number(value ?? 0);
}

// What happened between two answers, by the server's own clock; null where they
// are not of one life of the server, or no time lies between.
//   tokensPerSecond     tokens handed to streams
//   rowsPerSecond       {kind: rows}
//   stepMilliseconds    mean length of a step; null where none was run
//   batch               mean decoding rows of a step that had any; null as above
export function ratesBetween(before, after) {
  const time = seconds(after.uptime) - seconds(before.uptime);
  if (!(time > 0)) return null;
  const grown = (field) => count(after[field]) - count(before[field]);
  const steps = grown("steps");
  const decoding = grown("steps_with_decode");
  return {
    tokensPerSecond: grown("tokens_delivered") / time,
    rowsPerSecond: Object.fromEntries(Object.entries(ROW_KINDS).map(
      ([field, kind]) => [kind, grown(field) / time])),
    stepMilliseconds: steps > 0 ? 1e3 * grown("step_seconds") / steps : null,
    batch: decoding > 0 ? grown("rows_decode") / decoding : null,
  };
}

// The last `length` points of several lines over time, as columns.
export class History {
  constructor(lines, length) {
    this.length = length;
    this.columns = Array.from({ length: lines + 1 }, () => []);
  }

  // Values are in the order of the lines; null is a gap. A time before the last
  // one is that of a server which began anew: what was is forgotten.
  push(time, values) {
    if (time <= this.columns[0].at(-1)) {
      for (const column of this.columns) column.length = 0;
    }
    [time, ...values].forEach((value, i) => {
      this.columns[i].push(value);
      if (this.columns[i].length > this.length) this.columns[i].shift();
    });
  }
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

// "3.4 MiB"
export function bytesText(value) {
  let amount = count(value);
  let unit = 0;
  while (amount >= 1024 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${Number(amount.toPrecision(3))} ${UNITS[unit]}`;
}

// "1 d 2 h", "3 min 20 s", "4.5 s": the two largest parts.
export function durationText(time) {
  const parts = [["d", 86400], ["h", 3600], ["min", 60]];
  const at = parts.findIndex(([, size]) => time >= size);
  if (at < 0) return `${Number(time.toPrecision(2))} s`;
  const [unit, size] = parts[at];
  const [nextUnit, nextSize] = parts[at + 1] ?? ["s", 1];
  const rest = Math.floor((time % size) / nextSize);
  return `${Math.floor(time / size)} ${unit} ${rest} ${nextUnit}`;
}
