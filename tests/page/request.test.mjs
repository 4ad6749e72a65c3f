import assert from "node:assert/strict";
import { test } from "node:test";

import { FieldError, defaultFields, jsonOf, newRequestId, requestOf,
  stopTexts } from "../../server/http/page/request.js";

// As GET /v1/models has it: 64 bits as strings.
const MODEL = { limits: { max_logprobs: "20" },
  default_sampling: { temperature: 0.8, top_k: "0", top_p: 1, min_p: 0,
    typical_p: 1, repetition_penalty: 1, presence_penalty: 0,
    frequency_penalty: 0 },
  default_stop: { max_tokens: 128, stop_texts: ["\n\n", "a\\b"] } };
const DEFAULTS = defaultFields(MODEL);
const PARTS = { prompt: "ROMEO:", sessionId: "verona", requestId: "turn-1" };
const request = (changes, parts = PARTS) =>
  requestOf({ ...DEFAULTS, ...changes }, DEFAULTS, parts);

test("fields begin with the model's defaults", () => {
  assert.equal(DEFAULTS.temperature, "0.8");
  assert.equal(DEFAULTS.top_k, "0");
  assert.equal(DEFAULTS.max_tokens, "128");
  assert.equal(DEFAULTS.seed, "");
  assert.equal(DEFAULTS.stop, "\\n\\n\na\\\\b");
  assert.equal(DEFAULTS.ignore_eos, false);
  assert.equal(DEFAULTS.follow_kinds, false);
});

test("kinds of tokens are followed where model and form differ", () => {
  const model = { ...MODEL, default_sampling: { ...MODEL.default_sampling,
    follow_kinds: true } };
  const defaults = defaultFields(model);
  assert.equal(defaults.follow_kinds, true);
  assert.ok(!("follow_kinds" in requestOf(defaults, defaults, PARTS)));
  const off = requestOf({ ...defaults, follow_kinds: false }, defaults, PARTS);
  assert.equal(off.follow_kinds, false);
  assert.equal(request({ follow_kinds: true }).follow_kinds, true);
});

test("the page asks for no more alternatives than the server gives", () => {
  assert.equal(DEFAULTS.logprobs, "5");
  assert.equal(defaultFields({ limits: { max_logprobs: "2" } }).logprobs, "2");
  // int64 that are 0 may be absent.
  assert.equal(defaultFields({ limits: { max_logprobs: "0" } }).logprobs, "0");
});

test("what is as the model has it stays away, but for max_tokens", () => {
  assert.deepEqual(request({}), { prompt: "ROMEO:", max_tokens: 128,
    logprobs: 5, session_id: "verona", request_id: "turn-1",
    return_token_ids: true, stream: true,
    stream_options: { include_usage: true } });
});

test("what was changed is sent, numbers as numbers", () => {
  const sent = request({ temperature: "0", top_k: "40", top_p: ".5",
    presence_penalty: "-1.5", ignore_eos: true, stop: "END\n\\n" });
  assert.equal(sent.temperature, 0);
  assert.equal(sent.top_k, 40);
  assert.equal(sent.top_p, 0.5);
  assert.equal(sent.presence_penalty, -1.5);
  assert.equal(sent.ignore_eos, true);
  assert.deepEqual(sent.stop, ["END", "\n"]);
});

test("an emptied field is absent", () => {
  const sent = request({ temperature: "", max_tokens: "", logprobs: "" });
  for (const name of ["temperature", "max_tokens", "logprobs"]) {
    assert.ok(!(name in sent), name);
  }
});

test("a turn without prompt continues its session", () => {
  const sent = request({}, { prompt: null, sessionId: "verona" });
  assert.ok(!("prompt" in sent));
  assert.ok(!("request_id" in sent));
  assert.equal(sent.session_id, "verona");
});

test("a seed keeps its 64 bits", () => {
  const sent = request({ seed: " 18446744073709551615 " });
  assert.match(jsonOf(sent), /"seed": 18446744073709551615[,}]/);
  assert.match(jsonOf(request({ seed: "-1" })), /"seed": -1[,}]/);
});

test("a seed that is not a number is an error of its field", () => {
  for (const seed of ["x", "1.5", "0x10", "1 2"]) {
    assert.throws(() => request({ seed }), (error) =>
      error instanceof FieldError && error.param === "seed", seed);
  }
});

test("JSON is what JSON.parse reads back", () => {
  const sent = request({ stop: "\"quoted\"\n}" },
    { ...PARTS, prompt: "a\u2028\"\\\ud800" });
  assert.deepEqual(JSON.parse(jsonOf({ ...sent, absent: undefined })), sent);
});

test("stop texts are lines in which breaks can be written", () => {
  assert.deepEqual(stopTexts("a\n\n\\n\\tb\\\\n\n\\x"),
    ["a", "\n\tb\\n", "\\x"]);
  assert.deepEqual(stopTexts(""), []);
});

test("names of turns are ids of the interface, and all differ", () => {
  const names = Array.from({ length: 100 }, newRequestId);
  assert.equal(new Set(names).size, 100);
  for (const name of names) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/);
});
