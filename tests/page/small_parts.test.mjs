import assert from "node:assert/strict";
import { test } from "node:test";

import { TurnClock } from "../../server/http/page/clock.js";
import { patiently, sleep } from "../../server/http/page/retry.js";
import { Spellings } from "../../server/http/page/spellings.js";

test("a turn's clock tells rate and time to the first token", () => {
  let now = 1000;
  const clock = new TurnClock(() => now);
  assert.equal(clock.summary(), "no tokens");
  now = 1120;
  clock.tokens(1);
  assert.equal(clock.summary(), "1 token, the first after 120 ms");
  now = 1220;
  clock.tokens(2);
  // Two more in 100 ms.
  assert.equal(clock.summary(),
    "3 tokens, 20 a second, the first after 120 ms");
  assert.deepEqual(clock.gaps, [120, 100, 0]);
});

const busy = (retryAfter, status = 429) =>
  Object.assign(new Error("busy"), { status, retryAfter });

// Does an action that fails with these errors first.
function attempt(errors) {
  const waits = [];
  const result = patiently(async () => {
    if (errors.length > 0) throw errors.shift();
    return "done";
  }, { onWait: (message, wait) => waits.push([message, wait]) });
  return { result, waits };
}

test("a busy server is waited for as long as it asks", async () => {
  const { result, waits } = attempt([busy(1), busy(2, 503)]);
  assert.equal(await result, "done");
  assert.deepEqual(waits, [["busy", 1], ["busy", 2]]);
});

test("a server that does not ask is not waited for", async () => {
  await assert.rejects(attempt([busy(null)]).result, { message: "busy" });
  await assert.rejects(attempt([busy(1, 400)]).result, { message: "busy" });
});

test("patience ends at the fifth try", async () => {
  const { result, waits } = attempt(Array.from({ length: 5 }, () => busy(0)));
  await assert.rejects(result, { message: "busy" });
  assert.equal(waits.length, 4);
});

test("waiting ends at once when it is stopped", async () => {
  const stop = new AbortController();
  const waiting = sleep(60_000, stop.signal);
  stop.abort();
  await assert.rejects(waiting, { name: "AbortError" });
  await assert.rejects(sleep(60_000, stop.signal), { name: "AbortError" });
});

// A server that spells ids; counts what it is asked, and how much at once.
function fakeServer() {
  const server = { asked: [], open: 0, most: 0 };
  server.detokenize = async (ids) => {
    server.asked.push(...ids);
    server.most = Math.max(server.most, server.open += 1);
    await sleep(1);
    server.open -= 1;
    return { prompt: `<${ids[0]}>` };
  };
  return server;
}

test("each id is asked for once, six at a time", async () => {
  const server = fakeServer();
  const spellings = new Spellings(server);
  spellings.setModel({ vocabulary_kind: "characters" });
  const ids = Array.from({ length: 40 }, (_, i) => i % 20);
  assert.deepEqual(await spellings.of(ids), ids.map((id) => `<${id}>`));
  assert.deepEqual(await spellings.of([3, 3]), ["<3>", "<3>"]);
  assert.equal(server.asked.length, 20);
  assert.ok(server.most <= 6);
});

test("a model without text has its ids as spellings", async () => {
  const server = fakeServer();
  const spellings = new Spellings(server);
  spellings.setModel({});
  assert.deepEqual(await spellings.of([7, 8]), ["#7", "#8"]);
  assert.equal(server.asked.length, 0);
});
