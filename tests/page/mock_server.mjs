// A server that speaks txl-server's HTTP interface and serves the page, for
// what a test cannot have from a real one: music, markup, a thousand tokens a
// second, refusals, broken connections.
//
// By itself: node mock_server.mjs [--music] [--port N]

import { readFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { makeModel } from "./mock_model.mjs";
import { MOST_TOKENS, MockSessions, Refusal, checkLength }
  from "./mock_sessions.mjs";
import { MockTurns } from "./mock_turn.mjs";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const PAGE = path.join(ROOT, "server/http/page");
const CHARTS = path.join(ROOT, "server/http/uplot");
const TYPES = { ".html": "text/html; charset=utf-8", ".svg": "image/svg+xml",
  ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; " +
  "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'";

// Starts a server; resolves to {url, turns, sessions, close()}. `turns.bodies`
// has what was sent to /v1/completions. With `key` every call needs it, and
// `refused` counts those without it.
export async function startMock({ music = false, port = 0, key = "" } = {}) {
  const model = makeModel(music);
  const sessions = new MockSessions(model);
  const turns = new MockTurns(model, sessions);
  const mock = { model, sessions, turns, key, refused: 0,
    begin: performance.now() };
  const server = http.createServer((request, response) =>
    answer(mock, request, response).catch((error) => refuse(response, error)));
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${server.address().port}/`, turns, sessions,
    close, refused: () => mock.refused };
}

async function answer(mock, request, response) {
  const url = new URL(request.url, "http://mock");
  const body = await readBody(request);
  const page = url.pathname === "/" || url.pathname.startsWith("/ui/");
  if (mock.key !== "" && !page &&
    request.headers.authorization !== `Bearer ${mock.key}`) {
    ++mock.refused;
    throw new Refusal(401, "a valid key is needed: authorization: Bearer KEY",
      { code: "UNAUTHENTICATED" });
  }
  if (request.method === "POST" &&
    request.headers["content-type"] !== "application/json") {
    throw new Refusal(415, "application/json is needed", { code: "MEDIA" });
  }
  if (url.pathname === "/v1/completions") {
    return mock.turns.run(body, response);
  }
  const fields = body === "" ? {} : JSON.parse(body);
  const found = url.pathname.startsWith("/v1/sessions")
    ? sessionAnswer(mock.sessions, request.method, url, fields)
    : otherAnswer(mock, url.pathname, fields);
  if (found === null) return sendFile(url.pathname, response);
  response.writeHead(200, { "content-type": "application/json" });
  return response.end(JSON.stringify(found));
}

function otherAnswer({ model, sessions, turns, begin }, pathname, fields) {
  const answers = {
    "/v1/models": () => ({ object: "list", data: [{ id: "mock",
      object: "model", created: 1764000000, owned_by: "txl-server",
      txl: modelCard(model) }] }),
    "/v1/status": () => status(sessions, turns, begin),
    "/health": () => ({}),
    "/tokenize": () => tokenize(model, fields),
    "/detokenize": () => {
      checkLength("tokens", fields.tokens);
      return { prompt: model.text(fields.tokens) };
    },
  };
  return answers[pathname]?.() ?? null;
}

function tokenize(model, { prompt, midi }) {
  if (midi === undefined) {
    const tokens = model.tokenize(prompt);
    return { tokens, count: tokens.length, left_out: [] };
  }
  const music = model.readMidi?.(Buffer.from(midi, "base64")) ?? null;
  if (music !== null) return music;
  throw new Refusal(400, model.readMidi ? "is not a MIDI file"
    : "MIDI needs a model of music", { param: "midi", code: "FIELD_INVALID" });
}

function sessionAnswer(sessions, method, url, fields) {
  const [id, action] = url.pathname.slice("/v1/sessions".length + 1).split("/")
    .map(decodeURIComponent);
  const query = (name) => url.searchParams.get(name) ?? "";
  if (!id && method === "GET") {
    return sessions.list(Number(query("page_size")), query("page_token"));
  }
  if (!id) return sessions.json(sessions.create(fields.session_id));
  if (method === "DELETE") return sessions.remove(id);
  if (action === "append") return sessions.append(id, fields.tokens);
  if (action === "rewind") return sessions.rewind(id, fields.position);
  if (action === "fork") {
    return sessions.fork(id, fields.new_session_id, fields.position);
  }
  return sessions.get(id, query("include_tokens") === "true",
    query("page_token"));
}

function modelCard(model) {
  return { name: "mock", fingerprint: "ab".repeat(32),
    vocabulary_size: String(model.vocabulary.length),
    vocabulary_kind: model.kind, layers: "4", heads: "8", head_width: "32",
    model_width: "256", embedding_width: "256", inner_width: "1024",
    memory_length: "512", window: "640", bytes_per_session: "2097152",
    device: "cpu", kernel: "native avx2", form: "absorbed",
    weight_dtype: "f32", memory_dtype: "f32", server_version: "1.0",
    api_version: "txl.v1", start_tokens: [0], end_tokens: [],
    token_kinds: model.kinds ?? [],
    limits: { max_prompt_tokens: String(MOST_TOKENS),
      max_prompt_bytes: "1000", max_tokens: "10000", max_logprobs: "20", min_ttl: "1s",
      max_ttl: "2592000s" },
    default_sampling: { temperature: 0.8, top_k: "0", top_p: 1, min_p: 0,
      typical_p: 1, repetition_penalty: 1, presence_penalty: 0,
      frequency_penalty: 0, penalty_window: 64, min_tokens: 0,
      follow_kinds: false },
    default_stop: { max_tokens: 128, ignore_end_token: false } };
}

function status(sessions, turns, begin) {
  const uptime = (performance.now() - begin) / 1e3;
  return { state: "SERVER_STATE_READY", uptime: `${uptime.toFixed(3)}s`,
    sessions_busy: String(sessions.busy),
    sessions_idle: String(sessions.size - sessions.busy),
    slots_used: String(sessions.size), slots_total: "64",
    steps: String(turns.delivered), step_seconds: turns.delivered * 0.002,
    rows_decode: String(turns.delivered),
    steps_with_decode: String(turns.delivered),
    tokens_sampled: String(turns.delivered),
    tokens_delivered: String(turns.delivered), resident_bytes: "104857600",
    connections_open: "3", prefix_lookups: "9", prefix_hits: "7",
    tokens_cached: "1234" };
}

async function sendFile(pathname, response) {
  const name = pathname === "/" ? "index.html"
    : path.basename(pathname);
  const folder = name.startsWith("uPlot") ? CHARTS : PAGE;
  const known = pathname === "/" || pathname === `/ui/${name}`;
  const type = TYPES[path.extname(name)];
  const content = known && type !== undefined
    ? await readFile(path.join(folder, name)).catch(() => null) : null;
  if (content === null) {
    throw new Refusal(404, `there is no ${pathname}`, { code: "NOT_FOUND" });
  }
  response.writeHead(200, { "content-type": type,
    "content-security-policy": POLICY, "x-content-type-options": "nosniff" });
  response.end(content);
}

function refuse(response, error) {
  const { status: code = 500, param = null } = error;
  if (response.headersSent) return response.destroy();
  response.writeHead(code,
    { "content-type": "application/json", ...error.headers });
  return response.end(JSON.stringify({ error: { message: error.message,
    type: "invalid_request_error", param, code: error.code ?? "INTERNAL" } }));
}

async function readBody(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const at = process.argv.indexOf("--port");
  const mock = await startMock({ music: process.argv.includes("--music"),
    port: at < 0 ? 0 : Number(process.argv[at + 1]) });
  console.log(mock.url);
}
