import assert from "node:assert/strict";
import { test } from "node:test";

import { History, bytesText, count, durationText, ratesBetween, seconds }
  from "../../server/http/page/rates.js";

test("a second's counters become rates by the server's clock", () => {
  const before = { uptime: "10.5s", tokens_delivered: "100", steps: "10",
    step_seconds: 0.5, rows_decode: "90", rows_prefill: "7",
    steps_with_decode: "9" };
  const after = { uptime: "12.5s", tokens_delivered: "160", steps: "20",
    step_seconds: 0.54, rows_decode: "150", rows_prefill: "17",
    rows_score: "4", steps_with_decode: "19" };
  assert.deepEqual(roundAll(ratesBetween(before, after)), {
    tokensPerSecond: 30, stepMilliseconds: 4, batch: 6,
    rowsPerSecond: { decoding: 30, prompts: 5, scoring: 2, rebuilding: 0 } });
});

function roundAll(rates) {
  return { ...rates, stepMilliseconds:
    Number(rates.stepMilliseconds.toFixed(9)) };
}

test("counters that are absent are 0", () => {
  const rates = ratesBetween({ uptime: "1s" }, { uptime: "2s" });
  assert.equal(rates.tokensPerSecond, 0);
  assert.equal(rates.stepMilliseconds, null);
  assert.equal(rates.batch, null);
});

test("answers of two lives of a server, or of one moment, give no rates", () => {
  assert.equal(ratesBetween({ uptime: "9s" }, { uptime: "1s" }), null);
  assert.equal(ratesBetween({ uptime: "9s" }, { uptime: "9s" }), null);
});

test("durations and counts are read as Protobuf's JSON writes them", () => {
  assert.equal(seconds("3.000250s"), 3.00025);
  assert.equal(seconds(undefined), 0);
  assert.equal(count("9007199254740991"), 9007199254740991);
  assert.equal(count(undefined), 0);
});

test("history keeps its last points", () => {
  const history = new History(2, 3);
  for (let time = 1; time <= 5; time += 1) history.push(time, [time * 2, null]);
  assert.deepEqual(history.columns,
    [[3, 4, 5], [6, 8, 10], [null, null, null]]);
});

test("history begins anew with a server that does", () => {
  const history = new History(1, 9);
  for (const time of [50, 51, 2, 3]) history.push(time, [time]);
  assert.deepEqual(history.columns, [[2, 3], [2, 3]]);
});

test("bytes have the unit that suits them", () => {
  assert.equal(bytesText("0"), "0 B");
  assert.equal(bytesText("1536"), "1.5 KiB");
  assert.equal(bytesText(String(5 * 2 ** 30)), "5 GiB");
  assert.equal(bytesText(String(2 ** 52)), "4100 TiB");
});

test("durations have their two largest parts", () => {
  assert.equal(durationText(4.52), "4.5 s");
  assert.equal(durationText(200), "3 min 20 s");
  assert.equal(durationText(93600), "1 d 2 h");
  assert.equal(durationText(3661), "1 h 1 min");
});
