// A turn of the mock server. Words of the prompt that begin with "@" make it
// do what tests need and a real server does only when it is in trouble:
//   @markup     says markup
//   @rate=N     hands out N tokens a second
//   @bytes      sends every byte by itself
//   @fail       fails behind three tokens
//   @busy       refuses the turn at first (429); @down likewise (503)
//   @cut        cuts the connection behind three tokens, the first time

import { sample } from "./mock_model.mjs";
import { Refusal, checkLength } from "./mock_sessions.mjs";

const DEFAULT_RATE = 200;
const TICK_MS = 4;
// Tokens that were handed out, but not read, when a client goes away.
const UNREAD = 2;

export class MockTurns {
  #model;
  #sessions;
  // Requests that were refused or cut once.
  #disturbed = new Set();
  // Requests that were sent, by request_id: their text tells tests what the
  // page sent.
  bodies = [];
  delivered = 0;

  constructor(model, sessions) {
    this.#model = model;
    this.#sessions = sessions;
  }

  // Answers POST /v1/completions.
  async run(text, response) {
    this.bodies.push(text);
    const request = JSON.parse(text);
    checkRange(request, "temperature", 0, 100);
    checkRange(request, "top_p", Number.MIN_VALUE, 1);
    const session = request.session_id
      ? this.#sessions.find(request.session_id) : { ids: [] };
    const wishes = readWishes(String(request.prompt ?? ""));
    const again = this.#disturbed.has(request.request_id);
    this.#refuse(request, wishes, again);
    // JSON.parse would round it.
    const seed = BigInt(/"seed": ?(-?\d+)/.exec(text)?.[1] ?? 1234);
    const turn = { request, session, wishes, seed,
      cut: wishes.has("cut") && !again };
    // A turn that was cut off begins once more and says the same.
    if (again && wishes.has("cut")) session.ids.length = session.before;
    this.#feed(turn);
    response.writeHead(200, { "content-type": "text/event-stream",
      "cache-control": "no-store", "x-request-id": "r-1",
      "x-txl-seed": BigInt.asUintN(64, seed).toString(),
      ...(request.session_id ? { "x-txl-session": request.session_id } : {}) });
    response.flushHeaders();
    session.busy = true;
    await this.#stream(turn, response);
    session.busy = false;
  }

  #refuse(request, wishes, again) {
    const status = wishes.has("busy") ? 429 : wishes.has("down") ? 503 : 0;
    if (status === 0 || again) return;
    this.#disturb(request);
    throw new Refusal(status, "The server has too much to do.",
      { code: "QUEUE_FULL", headers: { "retry-after-ms": "700" } });
  }

  // A request without a name is a new one each time.
  #disturb(request) {
    if (request.request_id) this.#disturbed.add(request.request_id);
  }

  #feed({ request, session }) {
    const prompt = request.prompt ?? "";
    if (Array.isArray(prompt)) checkLength("prompt", prompt);
    const ids = Array.isArray(prompt) ? prompt : this.#model.tokenize(prompt);
    if (ids.includes(-1)) {
      throw new Refusal(400, "holds a symbol that the vocabulary lacks",
        { param: "prompt", code: "FIELD_INVALID" });
    }
    session.before = session.ids.length;
    session.lastTurn = { request_id: request.request_id ?? "",
      outcome: "CANCELLED", start_position: String(session.ids.length),
      prompt_tokens: String(ids.length), generated_tokens: "0" };
    session.ids.push(...ids);
  }

  async #stream(turn, response) {
    const { request, session, wishes } = turn;
    const count = request.max_tokens ?? 16;
    const rate = Number(wishes.get("rate") ?? DEFAULT_RATE);
    const begin = performance.now();
    const send = (text) => this.#write(response, text, wishes.has("bytes"));
    let made = 0;
    while (made < count && !response.destroyed) {
      const due = Math.min(count,
        1 + Math.floor((performance.now() - begin) * rate / 1e3));
      for (; made < due; made += 1) {
        send(this.#next(turn));
        if (made === 2 && wishes.has("fail")) return fail(response);
        if (made === 2 && turn.cut) {
          this.#disturb(request);
          return setTimeout(() => response.destroy(), 50);
        }
      }
      await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    }
    if (response.destroyed) {
      for (let i = 0; i < UNREAD && made < count; i += 1) this.#next(turn);
      return;
    }
    session.lastTurn.outcome = "MAX_TOKENS";
    send(chunk({ text: "", token_ids: [], finish_reason: "length",
      logprobs: null }));
    send({ ...frame(), choices: [], usage: { prompt_tokens: 1,
      completion_tokens: made, total_tokens: made + 1 } });
    send("[DONE]");
    response.end();
  }

  // Samples a token into the session; returns its chunk.
  #next({ request, session, wishes, seed }) {
    const token = sample(this.#model, { seed, position: session.ids.length,
      markup: wishes.has("markup"), alternatives: request.logprobs ?? 0 });
    session.ids.push(token.id);
    const last = session.lastTurn;
    last.generated_tokens = String(Number(last.generated_tokens) + 1);
    this.delivered += 1;
    const logprobs = request.logprobs === undefined ? null : {
      tokens: [token.text], token_logprobs: [token.logprob],
      top_logprobs: [token.top], text_offset: [0] };
    return chunk({ text: token.text, token_ids: [token.id],
      finish_reason: null, logprobs });
  }

  #write(response, event, byByte) {
    const text = typeof event === "string" ? event : JSON.stringify(event);
    const bytes = Buffer.from(`data: ${text}\n\n`);
    if (!byByte) return response.write(bytes);
    for (const byte of bytes) response.write(Buffer.from([byte]));
    return true;
  }
}

function frame() {
  return { id: "cmpl-1", object: "text_completion", created: 1764000000,
    model: "mock", system_fingerprint: "abc", usage: null };
}

function chunk(choice) {
  return { ...frame(), choices: [{ index: 0, ...choice }] };
}

function fail(response) {
  const error = { message: "A step failed.", type: "server_error", param: null,
    code: "STEP_FAILED" };
  response.end(`data: ${JSON.stringify({ error })}\n\ndata: [DONE]\n\n`);
}

function readWishes(prompt) {
  return new Map([...prompt.matchAll(/@(\w+)(?:=(\d+))?/g)].map(
    ([, name, value]) => [name, value]));
}

function checkRange(request, name, low, high) {
  const value = request[name];
  if (value === undefined || (value >= low && value <= high)) return;
  throw new Refusal(400, `must be in [${low}, ${high}], is ${value}`,
    { param: name, code: "FIELD_INVALID" });
}
