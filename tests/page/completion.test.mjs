import assert from "node:assert/strict";
import { test } from "node:test";

import { readEvent } from "../../server/http/page/completion.js";

const event = (choice, more = {}) => readEvent(JSON.stringify({ id: "c",
  choices: choice ? [{ index: 0, finish_reason: null, ...choice }] : [],
  usage: null, ...more }));

test("a token has its text, id, probability and alternatives", () => {
  const { tokens, finishReason, usage } = event({ text: "é", token_ids: [7],
    logprobs: { tokens: ["é"], token_logprobs: [-0.5], text_offset: [0],
      top_logprobs: [{ e: -2, "é": -0.5, "__proto__x": -9999 }] } });
  assert.deepEqual(tokens, [{ id: 7, text: "é", name: "é", logprob: -0.5,
    top: [{ text: "é", logprob: -0.5 }, { text: "e", logprob: -2 },
      { text: "__proto__x", logprob: -9999 }] }]);
  assert.equal(finishReason, null);
  assert.equal(usage, null);
});

test("without logprobs a token has text and id alone", () => {
  assert.deepEqual(event({ text: "a", token_ids: [1], logprobs: null }).tokens,
    [{ id: 1, text: "a", name: "a", logprob: undefined, top: [] }]);
});

test("a token whose text is held back has none, but keeps its name", () => {
  const [token] = event({ text: "", token_ids: [9],
    logprobs: { tokens: ["\ufffd"], token_logprobs: [-1],
      top_logprobs: [null] } }).tokens;
  assert.equal(token.text, "");
  assert.equal(token.name, "\ufffd");
});

test("several tokens of one event share its text", () => {
  const logprobs = { token_logprobs: [-1, -2], top_logprobs: [{}, {}] };
  const texts = (names, text) => event({ text, token_ids: [1, 2],
    logprobs: { ...logprobs, tokens: names } }).tokens.map((t) => t.text);
  assert.deepEqual(texts(["a", "b"], "ab"), ["a", "b"]);
  // Halves of a character are no text of their own.
  assert.deepEqual(texts(["\ufffd", "\ufffd"], "é"), ["", "é"]);
});

test("text that comes without a token is kept", () => {
  const { tokens, finishReason } = event({ text: "…", token_ids: [],
    finish_reason: "stop", logprobs: null });
  assert.deepEqual(tokens, [{ id: null, text: "…", name: "…", top: [] }]);
  assert.equal(finishReason, "stop");
  assert.deepEqual(event({ text: "", token_ids: [],
    finish_reason: "length" }).tokens, []);
});

test("the last events are usage and the end", () => {
  const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
  assert.deepEqual(event(null, { usage }).usage, usage);
  assert.deepEqual(readEvent("[DONE]"), { done: true });
});

test("an error is one", () => {
  const error = { message: "m", type: "t", param: null, code: "DRAINING" };
  assert.deepEqual(readEvent(JSON.stringify({ error })), { error });
});
