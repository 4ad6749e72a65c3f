import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { Api, ApiError } from "../../server/http/page/api.js";
import { newRequestId } from "../../server/http/page/request.js";
import { settleSession } from "../../server/http/page/settle.js";
import { cachedText, runTurn } from "../../server/http/page/turn.js";
import { startMock } from "./mock_server.mjs";

let mock;
let api;
let session;
before(async () => {
  mock = await startMock();
  api = new Api(mock.url);
});
beforeEach(async () => {
  session = (await api.createSession("")).session_id;
});
after(() => mock.close());

const requestOf = (prompt, more = {}) => ({ prompt, max_tokens: 8, logprobs: 2,
  session_id: session, request_id: newRequestId(), return_token_ids: true,
  stream: true, ...more });

// Runs a turn; gives all that its listener was told.
async function run(request, { signal, onToken = () => {} } = {}) {
  const told = { waits: [], starts: [], tokens: [] };
  told.end = await runTurn(api, request, signal, {
    onWait: (message, milliseconds) => told.waits.push([message, milliseconds]),
    onStart: (start) => told.starts.push(start),
    onTokens: (tokens) => {
      told.tokens.push(...tokens);
      onToken(told.tokens.length);
    } });
  return told;
}

const held = async (id = session) => (await api.getSession(id)).token_ids;
const ids = (tokens) => tokens.map(({ id }) => id);

test("a turn gives its seed, its tokens and its end", async () => {
  const told = await run(requestOf("ROMEO:", { seed: 2n ** 64n - 1n }));
  assert.deepEqual(told.starts, [{ seed: "18446744073709551615" }]);
  assert.equal(told.tokens.length, 8);
  assert.deepEqual((await held()).slice("ROMEO:".length), ids(told.tokens));
  assert.equal(told.end.finishReason, "length");
  assert.equal(told.tokens[0].top.length, 2);
});

test("usage is given where it was asked for", async () => {
  const told = await run(requestOf("a",
    { stream_options: { include_usage: true } }));
  assert.equal(told.end.usage.completion_tokens, 8);
});

test("what was cached is told where anything was", () => {
  const usage = (cached) => ({ prompt_tokens: 100,
    prompt_tokens_details: { cached_tokens: cached } });
  assert.equal(cachedText(usage(90)), "; 90 of 100 prompt tokens were cached");
  assert.equal(cachedText(usage(0)), "");
  assert.equal(cachedText({ prompt_tokens: 100 }), "");
  assert.equal(cachedText(null), "");
});

test("bytes that come one by one make the same tokens", async () => {
  const told = await run(requestOf("@bytes", { max_tokens: 50 }));
  assert.equal(told.tokens.length, 50);
  assert.deepEqual((await held()).slice("@bytes".length), ids(told.tokens));
  assert.equal("@bytes" + told.tokens.map(({ text }) => text).join(""),
    (await api.getSession(session)).text);
});

test("a refused turn is sent again when the server says so", async () => {
  for (const wish of ["@busy", "@down"]) {
    const told = await run(requestOf(wish));
    assert.deepEqual(told.waits,
      [["The server has too much to do.", 700]], wish);
    assert.equal(told.tokens.length, 8);
  }
});

test("waiting ends when the turn is stopped", async () => {
  const stop = new AbortController();
  const turn = runTurn(api, requestOf("@busy"), stop.signal,
    { onWait: () => stop.abort() });
  await assert.rejects(turn, { name: "AbortError" });
});

test("a turn that is cut off goes on without a token twice", async () => {
  const told = await run(requestOf("@cut"));
  assert.equal(told.waits.length, 1);
  assert.equal(told.starts.length, 1);
  assert.equal(told.tokens.length, 8);
  assert.deepEqual((await held()).slice("@cut".length), ids(told.tokens));
});

test("a turn without a name that is cut off is an error", async () => {
  await assert.rejects(run(requestOf("@cut", { request_id: undefined })),
    { code: "CONNECTION_CUT" });
});

test("an error has message, field and code", async () => {
  await assert.rejects(run(requestOf("a", { temperature: 200 })),
    (error) => error instanceof ApiError && error.status === 400 &&
      error.param === "temperature" && error.code === "FIELD_INVALID" &&
      error.message === "must be in [0, 100], is 200");
});

test("an error behind the first token ends the turn", async () => {
  const seen = [];
  const turn = runTurn(api, requestOf("@fail"), undefined, {
    onWait: () => {}, onStart: () => {},
    onTokens: (tokens) => seen.push(...tokens) });
  await assert.rejects(turn, { code: "STEP_FAILED",
    message: "A step failed." });
  assert.equal(seen.length, 3);
});

test("a stopped turn's session is brought to what was shown", async () => {
  const stop = new AbortController();
  const request = requestOf("@rate=20", { max_tokens: 100 });
  let shown = 0;
  await assert.rejects(run(request, { signal: stop.signal,
    onToken: (count) => {
      shown = count;
      if (count === 4) stop.abort();
    } }), { name: "AbortError" });
  await settleSession(api, request, shown);
  assert.equal((await held()).length, "@rate=20".length + 4);
});

test("a session with another last turn stays as it is", async () => {
  const request = requestOf("a");
  await run(request);
  await settleSession(api, { ...request, request_id: "another" }, 1);
  assert.equal((await held()).length, 1 + 8);
  await settleSession(api, request, 8);
  assert.equal((await held()).length, 1 + 8);
});

test("a session that is gone does not matter", async () => {
  await settleSession(api, requestOf("a", { session_id: "gone" }), 1);
});

test("a server that is not there is named as such", async () => {
  const nobody = new Api("http://127.0.0.1:9/");
  await assert.rejects(nobody.status(), { code: "NO_ANSWER", status: 0 });
});

test("an answer of something in between is shown as it is", async () => {
  const astray = new Api(`${mock.url}nowhere/`);
  await assert.rejects(astray.status(), { status: 404,
    message: "there is no /nowhere/v1/status" });
});
