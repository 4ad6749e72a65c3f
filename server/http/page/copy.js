// A request as a command for curl and grpcurl and as a Python program. Prompts
// may hold anything: each way of quoting is that of its language.

import { jsonOf } from "./request.js";

// The port that txl-server serves gRPC at by default; the page cannot know it.
const GRPC_PORT = 50051;

const ID = /^[A-Za-z0-9_-]{1,64}$/;

// Commands find the key, where there is one, in this variable: what is pasted
// into a file or a chat gives nobody's key away.
const KEY_VARIABLE = "TXL_KEY";

// A word of a POSIX shell. Nothing in single quotes means anything.
export function shellWord(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// JSON in which characters that are not seen, or that turn the order of others
// around, are written as numbers: what is pasted is what is read.
function plainJson(json) {
  return json.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from({ length: character.length }, (_, i) =>
      "\\u" + character.charCodeAt(i).toString(16).padStart(4, "0")).join(""));
}

// `base` is the URL of the page's folder, "http://127.0.0.1:8080/"; `keyed`: the
// server wants a key.
export function curlCommand(base, request, keyed = false) {
  const lines = [`curl -sS -N ${shellWord(base + "v1/completions")}`,
    "-H 'content-type: application/json'"];
  // A proxy finds the session's server by this header.
  if (ID.test(request.session_id ?? "")) {
    lines.push(`-H 'x-txl-session: ${request.session_id}'`);
  }
  if (keyed) lines.push(`-H "authorization: Bearer $${KEY_VARIABLE}"`);
  lines.push(`--data-raw ${shellWord(plainJson(jsonOf(request)))}`);
  return lines.join(" \\\n  ");
}

// A literal of Python's. The escapes of a JSON string are escapes of Python's,
// too; a character beyond U+FFFF stands as itself, for its halves would not
// become one character.
export function pythonLiteral(value) {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(", ")}]`;
  if (typeof value === "object") {
    const fields = Object.entries(value).map(([name, field]) =>
      `${pythonLiteral(name)}: ${pythonLiteral(field)}`);
    return `{${fields.join(", ")}}`;
  }
  if (typeof value === "string") {
    return JSON.stringify(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
      (character) => "\\U" +
        character.codePointAt(0).toString(16).padStart(8, "0"));
  }
  return String(value);
}

export function pythonProgram(base, request, keyed = false) {
  const fields = Object.entries(request).map(([name, value]) =>
    `    ${pythonLiteral(name)}: ${pythonLiteral(value)},\n`);
  const session = ID.test(request.session_id ?? "")
    ? `, "x-txl-session": ${pythonLiteral(request.session_id)}` : "";
  const key = keyed
    ? `, "authorization": f"Bearer {os.environ['${KEY_VARIABLE}']}"` : "";
  return `import json
${keyed ? "import os\n" : ""}import urllib.request

request = {
${fields.join("")}}
answer = urllib.request.urlopen(urllib.request.Request(
    ${pythonLiteral(base + "v1/completions")},
    json.dumps(request).encode(),
    {"content-type": "application/json"${session}${key}}))
for line in answer:
    if line.startswith(b"data: {"):
        for choice in json.loads(line[6:]).get("choices", []):
            print(choice["text"], end="", flush=True)
print()
`;
}

// The same turn as a GenerateRequest.
export function grpcRequest(request) {
  const pick = (names) => Object.fromEntries(Object.entries(names)
    .filter(([name]) => request[name] !== undefined)
    .map(([name, field]) => [field, request[name]]));
  const sampling = pick(Object.fromEntries(["temperature", "top_k", "top_p",
    "min_p", "typical_p", "repetition_penalty", "presence_penalty",
    "frequency_penalty", "follow_kinds"].map((name) => [name, name])));
  if (request.seed !== undefined) {
    // Protobuf's JSON writes 64 bits as text; ours are unsigned.
    sampling.seed = BigInt.asUintN(64, request.seed).toString();
  }
  const stop = pick({ max_tokens: "max_tokens", stop: "stop_texts",
    ignore_eos: "ignore_end_token" });
  const output = pick({ logprobs: "logprobs" });
  const message = pick({ session_id: "session_id", request_id: "request_id",
    prompt: "text" });
  for (const [name, part] of Object.entries({ sampling, stop, output })) {
    if (Object.keys(part).length > 0) message[name] = part;
  }
  return message;
}

export function grpcurlCommand(base, request, keyed = false) {
  const { hostname, protocol } = new URL(base);
  const address = `${hostname}:${GRPC_PORT}`;
  const lines = [protocol === "https:" ? "grpcurl" : "grpcurl -plaintext"];
  if (keyed) lines.push(`-H "authorization: Bearer $${KEY_VARIABLE}"`);
  if (ID.test(request.session_id ?? "")) {
    lines.push(`-H 'x-txl-session: ${request.session_id}'`);
  }
  lines.push(`-d ${shellWord(plainJson(jsonOf(grpcRequest(request))))}`,
    `${shellWord(address)} txl.v1.GenerationService/Generate`);
  return lines.join(" \\\n  ");
}
