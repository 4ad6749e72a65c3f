// Sessions of the mock server, in memory.

// An answer that is an error.
export class Refusal extends Error {
  constructor(status, message, { param = null, code, headers = {} }) {
    super(message);
    Object.assign(this, { status, param, code, headers });
  }
}

// Token ids that a request may have.
export const MOST_TOKENS = 50;

export function checkLength(param, ids) {
  if (ids.length <= MOST_TOKENS) return;
  throw new Refusal(400, `${ids.length} tokens, at most ${MOST_TOKENS}`,
    { param, code: "OVER_LIMIT" });
}

export class MockSessions {
  #model;
  #all = new Map();
  #made = 0;

  constructor(model) {
    this.#model = model;
  }

  find(id) {
    const session = this.#all.get(id);
    if (session === undefined) {
      throw new Refusal(404, `there is no session ${id}`,
        { param: "session_id", code: "SESSION_UNKNOWN" });
    }
    return session;
  }

  create(id = `made-${(this.#made += 1)}`, ids = []) {
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(id)) {
      throw new Refusal(400, "must be 1 to 64 characters of A-Z a-z 0-9 _ -",
        { param: "session_id", code: "FIELD_INVALID" });
    }
    if (this.#all.has(id)) {
      throw new Refusal(409, `session ${id} exists`,
        { param: "session_id", code: "SESSION_EXISTS" });
    }
    const session = { id, ids, busy: false, lastTurn: undefined,
      time: new Date().toISOString() };
    this.#all.set(id, session);
    return session;
  }

  // GetSessionResponse, in pages of `size` ids.
  get(id, includeTokens, pageToken, size = 400) {
    const session = this.find(id);
    if (!includeTokens) return { session: this.json(session) };
    const start = Number(pageToken || 0);
    const ids = session.ids.slice(start, start + size);
    return { session: this.json(session), token_ids: ids,
      text: this.#model.text(ids), start_position: String(start),
      next_page_token: start + size < session.ids.length
        ? String(start + size) : "" };
  }

  list(pageSize, pageToken) {
    const ids = [...this.#all.keys()].sort()
      .filter((id) => id > pageToken);
    const page = ids.slice(0, pageSize);
    return { object: "list",
      data: page.map((id) => this.json(this.find(id))),
      next_page_token: ids.length > pageSize ? page.at(-1) : "" };
  }

  remove(id) {
    this.find(id);
    this.#all.delete(id);
    return {};
  }

  append(id, tokens) {
    const session = this.find(id);
    checkLength("tokens", tokens);
    session.ids.push(...tokens);
    return { position: String(session.ids.length) };
  }

  rewind(id, position) {
    const session = this.find(id);
    this.#check(session, position);
    session.ids.length = position;
    session.lastTurn = { outcome: "REWOUND", start_position: String(position) };
    return { session: this.json(session) };
  }

  fork(id, newId, position) {
    const session = this.find(id);
    const kept = position ?? session.ids.length;
    this.#check(session, kept);
    return { session: this.json(
      this.create(newId, session.ids.slice(0, kept))) };
  }

  #check(session, position) {
    if (!(Number.isInteger(position) && position >= 0 &&
      position <= session.ids.length)) {
      throw new Refusal(400, `must be in [0, ${session.ids.length}]`,
        { param: "position", code: "FIELD_INVALID" });
    }
  }

  json(session) {
    return { session_id: session.id,
      state: `SESSION_STATE_${session.busy ? "BUSY" : "IDLE"}`,
      position: String(session.ids.length), create_time: session.time,
      last_use_time: session.time, expire_time: session.time, ttl: "86400s",
      memory_bytes: "4096", durable_position: "0",
      ...(session.lastTurn ? { last_turn: session.lastTurn } : {}) };
  }

  get busy() {
    return [...this.#all.values()].filter((session) => session.busy).length;
  }

  get size() {
    return this.#all.size;
  }
}
