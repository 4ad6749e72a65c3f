import assert from "node:assert/strict";
import { test } from "node:test";

import { EventDecoder, EventParser } from "../../server/http/page/sse.js";

const bytesOf = (text) => new TextEncoder().encode(text);

// All events of bytes that come in the given pieces.
function decode(pieces) {
  const decoder = new EventDecoder();
  return pieces.flatMap((piece) => decoder.push(piece));
}

const STREAM = ": a comment\n\ndata: {\"text\":\"naïve 中 😀\"}\n\n" +
  "data:without a space\r\n\r\ndata: two\rdata:  lines\r\r" +
  "id: 7\nevent: x\ndata\n\nretry: 3\n\ndata: [DONE]\n\n";
const EVENTS = ["{\"text\":\"naïve 中 😀\"}", "without a space", "two\n lines",
  "", "[DONE]"];

test("a whole stream gives the data of its events", () => {
  assert.deepEqual(decode([bytesOf(STREAM)]), EVENTS);
});

test("a stream cut in two at any byte gives the same events", () => {
  const bytes = bytesOf(STREAM);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const pieces = [bytes.slice(0, cut), bytes.slice(cut)];
    assert.deepEqual(decode(pieces), EVENTS, `cut at ${cut}`);
  }
});

test("a stream that comes byte by byte gives the same events", () => {
  const bytes = Array.from(bytesOf(STREAM), (byte) => Uint8Array.of(byte));
  assert.deepEqual(decode(bytes), EVENTS);
});

test("a line feed in a piece of its own behind CR is not an empty line", () => {
  const parser = new EventParser();
  assert.deepEqual(parser.push("data: a\r"), []);
  assert.deepEqual(parser.push(""), []);
  assert.deepEqual(parser.push("\n"), []);
  assert.deepEqual(parser.push("\r"), ["a"]);
  assert.deepEqual(parser.push("\ndata: b\n\n"), ["b"]);
});

test("an event that does not end is none", () => {
  assert.deepEqual(decode([bytesOf("data: cut off\n")]), []);
  assert.deepEqual(decode([bytesOf("data: cut off")]), []);
});

test("an event comes with the byte that ends it", () => {
  const parser = new EventParser();
  assert.deepEqual(parser.push("data: a\n"), []);
  assert.deepEqual(parser.push("\n"), ["a"]);
});
