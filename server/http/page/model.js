// The model's card: what GET /v1/models says of it.

import { byId, fillFacts } from "./dom.js";
import { bytesText, count, durationText, seconds } from "./rates.js";

const whole = (value) => count(value).toLocaleString("en");
const list = (ids) => (ids ?? []).join(", ") || "none";

const FACTS = [
  ["Name", "name"], ["Fingerprint", "fingerprint"],
  ["Vocabulary", "vocabulary_size", whole],
  ["Kind of vocabulary", "vocabulary_kind", (kind) => kind || "ids only"],
  ["Layers", "layers", whole], ["Heads", "heads", whole],
  ["Width of a head", "head_width", whole],
  ["Width of the model", "model_width", whole],
  ["Width of the embedding", "embedding_width", whole],
  ["Inner width", "inner_width", whole],
  ["Memory, positions", "memory_length", whole],
  ["Window, positions", "window", whole],
  ["Memory of a session", "bytes_per_session", bytesText],
  ["Device", "device"], ["Kernel", "kernel"], ["Attention", "form"],
  ["Weights", "weight_dtype"], ["Memory", "memory_dtype"],
  ["Start tokens", "start_tokens", list], ["End tokens", "end_tokens", list],
  ["Kinds of tokens", "token_kinds", list],
  ["Server", "server_version"], ["Interface", "api_version"],
];

// `model` is the `txl` object of GET /v1/models.
export function showModel(model) {
  fillFacts(byId("model-facts"), FACTS.map(([name, field, write = String]) =>
    [name, write(model[field] ?? "")]));
  fillFacts(byId("model-limits"), named(model.limits));
  fillFacts(byId("model-defaults"),
    named({ ...model.default_sampling, ...model.default_stop }));
}

// Fields by their own names, as requests and errors call them.
function named(fields) {
  return Object.entries(fields ?? {}).map(([name, value]) =>
    [name, valueText(name, value)]);
}

function valueText(name, value) {
  if (name.endsWith("_ttl")) return durationText(seconds(value));
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}
