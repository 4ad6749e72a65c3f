import assert from "node:assert/strict";
import { test } from "node:test";

import { base64, pieces, readMidiPrompt, summaryOf }
  from "../../server/http/page/midi_prompt.js";

// int64 as strings.
const LIMITS = { max_prompt_bytes: "8", max_prompt_tokens: "2" };

// A server that finds `tokens` in every file; `asked` has what it was sent.
function makeApi(tokens, leftOut = []) {
  const asked = [];
  return { asked,
    tokenizeMidi: async (midi) => {
      asked.push(midi);
      return { tokens, count: tokens.length, left_out: leftOut };
    },
    detokenize: async (ids) => {
      asked.push(ids);
      return { prompt: ids.map((id) => `Event_${id}`).join(" ") };
    } };
}

const file = (...bytes) => new File([new Uint8Array(bytes)], "song.mid");

test("bytes of any value are written in base64", () => {
  const all = Uint8Array.from({ length: 256 }, (_, i) => i);
  assert.equal(base64(all), Buffer.from(all).toString("base64"));
  assert.equal(base64(new Uint8Array()), "");
  const large = new Uint8Array(300_000).fill(255);
  assert.equal(base64(large), Buffer.from(large).toString("base64"));
});

test("ids are cut into lists of a length, with a rest", () => {
  assert.deepEqual(pieces([1, 2, 3, 4, 5], 2), [[1, 2], [3, 4], [5]]);
  assert.deepEqual(pieces([1, 2], 2), [[1, 2]]);
  assert.deepEqual(pieces([], 2), []);
});

test("a file becomes ids and their text", async () => {
  const api = makeApi([7, 3]);
  const prompt = await readMidiPrompt(api, file(0x4d, 0xff), LIMITS);
  assert.deepEqual(prompt.ids, [7, 3]);
  assert.equal(prompt.text, "Event_7 Event_3");
  assert.equal(prompt.said, "song.mid: 2 tokens.");
  assert.deepEqual(api.asked, ["Tf8=", [7, 3]]);
});

test("many ids become text in as many calls as the limit makes", async () => {
  const api = makeApi([1, 2, 3, 4, 5]);
  const prompt = await readMidiPrompt(api, file(1), LIMITS);
  assert.equal(prompt.text, "Event_1 Event_2 Event_3 Event_4 Event_5");
  assert.deepEqual(api.asked.slice(1), [[1, 2], [3, 4], [5]]);
});

test("what is left out is said with its number", () => {
  assert.equal(summaryOf("a.mid", 9, [{ what: "Note On_109", count: 2 },
    { what: "note without an end", count: 1 }]),
    "a.mid: 9 tokens. Left out: Note On_109 (2), note without an end (1).");
});

test("a file that is too large is not read", async () => {
  const api = makeApi([1]);
  await assert.rejects(
    readMidiPrompt(api, file(1, 2, 3, 4, 5, 6, 7, 8, 9), LIMITS),
    { param: "midi", code: "OVER_LIMIT",
      message: "song.mid: 9 bytes, at most 8" });
  assert.deepEqual(api.asked, []);
});

test("a folder cannot be read", async () => {
  const folder = { name: "songs", size: 4096 % 8,
    arrayBuffer: () => Promise.reject(new Error("NotFoundError")) };
  await assert.rejects(readMidiPrompt(makeApi([1]), folder, LIMITS),
    { param: "midi", message: "songs: cannot be read" });
});

test("what the server refuses is the caller's to show", async () => {
  const refusal = new Error("is not a MIDI file");
  const api = { ...makeApi([]), tokenizeMidi: () => Promise.reject(refusal) };
  await assert.rejects(readMidiPrompt(api, file(), LIMITS), refusal);
});
