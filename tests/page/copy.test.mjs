import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { curlCommand, grpcRequest, grpcurlCommand, pythonLiteral,
  pythonProgram, shellWord } from "../../server/http/page/copy.js";
import { startMock } from "./mock_server.mjs";

const run = promisify(execFile);

// Prompts that end a quotation, a command or a line in one language or another.
const HOSTILE = ["ROMEO:", "it's \"quoted\" and `ticked`", "$(touch /tmp/x)",
  "${HOME} $HOME %PATH% !history", "back\\slash \\n \\u0041 \\", "'; exit 1; '",
  "''' \"\"\" {} {{x}} %s", "line\nbreak\r\ntab\t", "# comment -- ; | & > <",
  "\u0000\u0007\u001b[31m\u007f\u0085", "\u2028\u2029\u202eevil\u200b\ufeff",
  "naïve 中 😀 \u{e0041}", "@file", "-d x"];
const requestOf = (prompt) => ({ prompt, max_tokens: 3, temperature: 0.5,
  top_p: 1, seed: 18446744073709551615n, stop: [prompt, "\n"],
  ignore_eos: false, follow_kinds: true, logprobs: 2, return_token_ids: true, stream: true,
  stream_options: { include_usage: true } });
const BASE = "http://127.0.0.1:8080/";

let mock;
before(async () => {
  mock = await startMock();
});
after(() => mock.close());

// What a request is once it went through JSON; the seed apart.
function plain(request) {
  const { seed, ...rest } = request;
  return rest;
}

function received() {
  const body = mock.turns.bodies.pop();
  assert.match(body, /"seed": ?18446744073709551615[,}]/);
  return plain(JSON.parse(body));
}

// The words that a shell makes of a command whose program is `name`.
async function words(name, command) {
  const { stdout } = await run("sh", ["-c",
    `${name}() { for word in "$@"; do printf '%s\\0' "$word"; done; }\n` +
    command]);
  return stdout.split("\0").slice(0, -1);
}

test("curl sends exactly the request", async () => {
  for (const prompt of HOSTILE) {
    const command = curlCommand(mock.url, requestOf(prompt));
    await run("sh", ["-c", command]);
    assert.deepEqual(received(), plain(requestOf(prompt)), prompt);
  }
});

test("the Python program sends exactly the request", async () => {
  for (const prompt of HOSTILE) {
    const program = pythonProgram(mock.url, requestOf(prompt));
    // The mock's vocabulary lacks some of these; it was asked all the same.
    await run("python3", ["-c", program]).catch((error) =>
      assert.match(error.stderr, /HTTP Error 400/));
    assert.deepEqual(received(), plain(requestOf(prompt)), prompt);
  }
});

test("the Python program prints the text as it comes", async () => {
  const request = { ...requestOf("@markup"), stop: undefined };
  const { stdout } = await run("python3", ["-c",
    pythonProgram(mock.url, request)]);
  assert.match(stdout, /<img|<script>|&lt;|<\/div>/);
});

test("grpcurl sends the same turn as a GenerateRequest", async () => {
  for (const prompt of HOSTILE) {
    const command = grpcurlCommand(BASE, requestOf(prompt));
    const [plaintext, d, json, address, method] =
      await words("grpcurl", command);
    assert.deepEqual([plaintext, d, address, method], ["-plaintext", "-d",
      "127.0.0.1:50051", "txl.v1.GenerationService/Generate"]);
    assert.deepEqual(JSON.parse(json), { text: prompt,
      sampling: { temperature: 0.5, top_p: 1, follow_kinds: true,
        seed: "18446744073709551615" },
      stop: { max_tokens: 3, stop_texts: [prompt, "\n"],
        ignore_end_token: false },
      output: { logprobs: 2 } });
  }
});

test("a negative seed is its two's complement over gRPC", () => {
  assert.deepEqual(grpcRequest({ seed: -1n }).sampling,
    { seed: "18446744073709551615" });
});

test("a session goes along in body and header", async () => {
  const request = { session_id: "verona-1", stream: true };
  const json = (list) => JSON.parse(list.at(-1));
  const curl = await words("curl", curlCommand(BASE, request));
  assert.ok(curl.includes("x-txl-session: verona-1"));
  assert.deepEqual(json(curl), request);
  const grpcurl = await words("grpcurl", grpcurlCommand(BASE, request));
  assert.ok(grpcurl.includes("x-txl-session: verona-1"));
  assert.match(pythonProgram(BASE, request), /"x-txl-session": "verona-1"/);
});

test("commands for a server with keys name the key's variable", async () => {
  const keyed = await startMock({ key: "a-key_1" });
  const request = requestOf("ROMEO:");
  const env = { ...process.env, TXL_KEY: "a-key_1" };
  for (const [program, option, command] of [["sh", "-c", curlCommand],
    ["python3", "-c", pythonProgram]]) {
    const text = command(keyed.url, request, true);
    assert.doesNotMatch(text, /a-key_1/);
    await run(program, [option, text], { env });
    assert.deepEqual(plain(JSON.parse(keyed.turns.bodies.pop())),
      plain(request));
  }
  assert.equal(keyed.refused(), 0);
  await keyed.close();
  assert.match(grpcurlCommand(BASE, request, true),
    /-H "authorization: Bearer \$TXL_KEY"/);
});

test("grpcurl uses TLS where the page does", () => {
  assert.doesNotMatch(grpcurlCommand("https://txl.example/", {}), /-plaintext/);
});

test("an id that is none is never part of a header", () => {
  const request = { session_id: "a'\r\nx: y" };
  for (const command of [curlCommand, grpcurlCommand, pythonProgram]) {
    assert.doesNotMatch(command(BASE, request), /x-txl-session/);
  }
});

test("what is not seen stands in a command as a number", () => {
  for (const prompt of ["\u202eevil", "\u200b", "\u0085", "\u2028"]) {
    for (const command of [curlCommand, grpcurlCommand, pythonProgram]) {
      assert.doesNotMatch(command(BASE, requestOf(prompt)),
        /[\u202e\u200b\u0085\u2028]/);
    }
  }
});

test("a shell's word is one word with the same text", async () => {
  for (const text of ["", "it's", "a b", "*", "~", "$(x)", "a\nb"]) {
    assert.deepEqual(await words("f", `f ${shellWord(text)}`), [text]);
  }
});

test("Python's literals have the values of JSON", async () => {
  const value = { a: [true, false, null, -1.5e-7, 3], "'": "\ud800", b: {} };
  const { stdout } = await run("python3", ["-c",
    `import json; print(json.dumps(${pythonLiteral(value)}))`]);
  assert.deepEqual(JSON.parse(stdout), value);
});
