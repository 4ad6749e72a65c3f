// The server's HTTP interface. Addresses are relative to the page, so that a
// proxy may serve it under any path.

import { EventDecoder } from "./sse.js";

// What a server refused, or why it could not be asked.
export class ApiError extends Error {
  // `status` is 0 where there was no answer. `retryAfter` is in milliseconds,
  // null where the server does not ask for another try.
  constructor(message, { status = 0, param = null, code = null,
    retryAfter = null } = {}) {
    super(message);
    this.status = status;
    this.param = param;
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

// Tokens of a page of a session's.
const TOKENS = 4000;

const ID = /^[A-Za-z0-9_-]{1,64}$/;

export class Api {
  // `base` is the URL of the page's folder, with a slash at its end.
  constructor(base) {
    this.base = base;
  }

  // The caller's; "" sends none.
  key = "";
  // Is called when the server wants another key than this one.
  onRefused = () => {};
  #refused = null;  // { key, error } of the last such answer

  models = () => this.#json("GET", "v1/models");
  status = () => this.#json("GET", "v1/status");
  tokenizeMidi = (midi) => this.#json("POST", "tokenize", { midi });
  detokenize = (ids) => this.#json("POST", "detokenize", { tokens: ids });

  listSessions = (pageSize, pageToken) => this.#json("GET",
    `v1/sessions?page_size=${pageSize}&page_token=` +
    encodeURIComponent(pageToken));

  createSession = (id) => this.#json("POST", "v1/sessions",
    id === "" ? {} : { session_id: id }, id);

  // One page of what a session holds.
  getSession = (id, pageToken = "") => this.#json("GET",
    `${sessionPath(id)}?include_tokens=true&page_size=${TOKENS}&page_token=` +
    encodeURIComponent(pageToken), undefined, id);

  append = (id, tokens) => this.#json("POST", `${sessionPath(id)}/append`,
    { tokens }, id);
  sessionState = (id) => this.#json("GET", sessionPath(id), undefined, id);
  deleteSession = (id) => this.#json("DELETE", sessionPath(id), undefined, id);
  rewindSession = (id, position) => this.#json("POST",
    `${sessionPath(id)}/rewind`, { position }, id);
  forkSession = (id, newId, position) => this.#json("POST",
    `${sessionPath(id)}/fork`, { position,
      ...(newId === "" ? {} : { new_session_id: newId }) }, id);

  // Starts a turn. `body` is its JSON. Returns the answer's headers and the
  // data of its events as they come.
  async complete(body, sessionId, signal) {
    const answer = await this.#fetch("POST", "v1/completions", body, sessionId,
      signal);
    return { headers: answer.headers, events: readEvents(answer.body) };
  }

  async #json(method, path, body, sessionId) {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const answer = await this.#fetch(method, path, text, sessionId);
    const content = await answer.text();
    try {
      return content === "" ? {} : JSON.parse(content);
    } catch {
      throw new ApiError(`${path}: the answer is no JSON`,
        { status: answer.status });
    }
  }

  async #fetch(method, path, body, sessionId, signal) {
    // A key that was refused is not sent again and again.
    if (this.#refused?.key === this.key) throw this.#refused.error;
    const headers = {};
    if (this.key !== "") headers.authorization = `Bearer ${this.key}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    // A proxy finds the session's server by this header.
    if (ID.test(sessionId ?? "")) headers["x-txl-session"] = sessionId;
    let answer;
    try {
      answer = await fetch(this.base + path,
        { method, body, headers, signal, cache: "no-store",
          // A page that is left still takes its session along.
          keepalive: method === "DELETE" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError("The server does not answer.", { code: "NO_ANSWER" });
    }
    if (answer.ok) return answer;
    const error = await errorOf(answer);
    if (answer.status === 401) {
      this.#refused = { key: headers.authorization?.slice(7) ?? "", error };
      this.onRefused();
    }
    throw error;
  }
}

function sessionPath(id) {
  return `v1/sessions/${encodeURIComponent(id)}`;
}

async function errorOf(answer) {
  const text = await answer.text().catch(() => "");
  const wait = answer.headers.get("retry-after-ms");
  const fields = { status: answer.status,
    retryAfter: wait === null ? null : Number(wait) };
  try {
    const { message, param, code } = JSON.parse(text).error;
    return new ApiError(message, { ...fields, param, code });
  } catch {
    // Something between the page and the server may answer in other words.
    return new ApiError(`HTTP ${answer.status}: ${text.slice(0, 200)}`, fields);
  }
}

async function* readEvents(body) {
  const decoder = new EventDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* decoder.push(value);
    }
  } finally {
    // A reader that leaves early cancels the turn.
    reader.cancel().catch(() => {});
  }
}
