// The body of a turn's request: which parameters there are, what a form's
// fields make of them, and how it is written as JSON.

// Parameters with a number; `part` is where GetModelResponse has the default.
export const PARAMETERS = [
  { name: "max_tokens", label: "Max tokens", part: "stop", step: 1 },
  { name: "temperature", label: "Temperature", part: "sampling", step: 0.1 },
  { name: "top_k", label: "Top k (0: off)", part: "sampling", step: 1 },
  { name: "top_p", label: "Top p (1: off)", part: "sampling", step: 0.05 },
  { name: "min_p", label: "Min p (0: off)", part: "sampling", step: 0.01 },
  { name: "typical_p", label: "Typical p (1: off)", part: "sampling",
    step: 0.05 },
  { name: "repetition_penalty", label: "Repetition penalty (1: off)",
    part: "sampling", step: 0.05 },
  { name: "presence_penalty", label: "Presence penalty (0: off)",
    part: "sampling", step: 0.1 },
  { name: "frequency_penalty", label: "Frequency penalty (0: off)",
    part: "sampling", step: 0.1 },
];

// Alternatives that the page asks for unless told otherwise.
const LOGPROBS = 5;

// A field that cannot be sent as it stands.
export class FieldError extends Error {
  constructor(param, message) {
    super(message);
    this.param = param;
  }
}

// What the fields hold before anything is typed: strings and booleans by name.
// `model` is the `txl` object of GET /v1/models, int64 as strings.
export function defaultFields(model) {
  const parts = { sampling: model.default_sampling ?? {},
    stop: model.default_stop ?? {} };
  const fields = { seed: "", stop: "" };
  for (const { name, part } of PARAMETERS) {
    fields[name] = String(parts[part][name] ?? "");
  }
  const most = Number(model.limits?.max_logprobs ?? LOGPROBS);
  fields.logprobs = String(Math.min(LOGPROBS, most));
  fields.stop = (parts.stop.stop_texts ?? []).map(escapeLine).join("\n");
  fields.ignore_eos = Boolean(parts.stop.ignore_end_token);
  fields.follow_kinds = Boolean(parts.sampling.follow_kinds);
  return fields;
}

// The request that fields stand for. What is as the model has it stays away,
// but for max_tokens: over HTTP its default is another one. `prompt` null
// continues the session. The seed is a BigInt, for it has 64 bits.
export function requestOf(fields, defaults, { prompt, sessionId, requestId }) {
  const request = {};
  if (prompt !== null) request.prompt = prompt;
  for (const { name } of PARAMETERS) {
    const changed = fields[name] !== defaults[name] || name === "max_tokens";
    if (changed && fields[name] !== "") request[name] = Number(fields[name]);
  }
  if (fields.seed !== "") request.seed = readSeed(fields.seed);
  if (fields.stop !== defaults.stop) request.stop = stopTexts(fields.stop);
  for (const name of ["ignore_eos", "follow_kinds"]) {
    if (fields[name] !== defaults[name]) request[name] = fields[name];
  }
  if (fields.logprobs !== "") request.logprobs = Number(fields.logprobs);
  if (sessionId) request.session_id = sessionId;
  if (requestId) request.request_id = requestId;
  return { ...request, return_token_ids: true, stream: true,
    stream_options: { include_usage: true } };
}

function readSeed(text) {
  if (!/^\s*-?\d+\s*$/.test(text)) {
    throw new FieldError("seed", "must be a whole number");
  }
  return BigInt(text.trim());
}

// One stop text a line; "\n", "\t" and "\\" are written as in C.
export function stopTexts(text) {
  const meaning = { n: "\n", t: "\t", "\\": "\\" };
  return text.split("\n").filter((line) => line !== "").map((line) =>
    line.replace(/\\([nt\\])/g, (_, letter) => meaning[letter]));
}

function escapeLine(text) {
  const letters = { "\n": "\\n", "\t": "\\t", "\\": "\\\\" };
  return text.replace(/[\n\t\\]/g, (character) => letters[character]);
}

// The request as JSON. JSON.stringify knows no BigInt, and a seed as a double
// would be another seed.
export function jsonOf(request) {
  const texts = Object.entries(request).map(([name, value]) => [name,
    typeof value === "bigint" ? value : JSON.stringify(value)]);
  const fields = texts.filter(([, text]) => text !== undefined)
    .map(([name, text]) => `${JSON.stringify(name)}: ${text}`);
  return `{${fields.join(", ")}}`;
}

// A name for a turn that no other turn has.
export function newRequestId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return "page-" + Array.from(bytes, (byte) =>
    byte.toString(16).padStart(2, "0")).join("");
}
