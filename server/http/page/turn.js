// One turn: sends the request, waits where the server asks for it, goes on
// where the connection broke, and hands out tokens.

import { ApiError } from "./api.js";
import { readEvent } from "./completion.js";
import { jsonOf } from "./request.js";
import { askedWait, patiently } from "./retry.js";

// How long the page waits before it goes on with a turn that was cut off.
const RECONNECT_MS = 500;

// Runs a turn to its end. `listener` has
//   onWait(message, milliseconds)   the request will be sent again
//   onStart({seed})                 the turn runs; called once
//   onTokens(tokens)                as completion.js reads them
// Returns {finishReason, usage}. Throws ApiError, and AbortError where `signal`
// says so.
export function runTurn(api, request, signal, listener) {
  const turn = { body: jsonOf(request), sessionId: request.session_id,
    received: 0, started: false };
  // One that broke off may be sent again where its name tells the server that
  // it is the same.
  const named = Boolean(request.session_id && request.request_id);
  const waitBefore = (error) => {
    const cut = error.code === "CONNECTION_CUT" || error.code === "NO_ANSWER";
    return cut && named && turn.started ? RECONNECT_MS : askedWait(error);
  };
  return patiently(() => runOnce(api, turn, signal, listener),
    { signal, onWait: listener.onWait, waitBefore });
}

async function runOnce(api, turn, signal, listener) {
  const { headers, events } = await api.complete(turn.body, turn.sessionId,
    signal);
  if (!turn.started) listener.onStart({ seed: headers.get("x-txl-seed") });
  turn.started = true;
  // A turn that is sent again repeats what is here already.
  let repeated = turn.received;
  const end = { finishReason: null, usage: null };
  for await (const data of untilCut(events)) {
    const event = readEvent(data);
    if (event.done) return end;
    if (event.error) throw new ApiError(event.error.message, event.error);
    const fresh = event.tokens.slice(repeated);
    repeated = Math.max(0, repeated - event.tokens.length);
    turn.received += fresh.length;
    if (fresh.length > 0) listener.onTokens(fresh);
    end.finishReason = event.finishReason ?? end.finishReason;
    end.usage = event.usage ?? end.usage;
  }
  throw cutError();
}

function cutError() {
  return new ApiError("The connection broke before the turn's end.",
    { code: "CONNECTION_CUT" });
}

async function* untilCut(events) {
  try {
    yield* events;
  } catch (error) {
    throw error.name === "AbortError" ? error : cutError();
  }
}

// "; 90 of 100 prompt tokens were cached", where a usage says so of any.
export function cachedText(usage) {
  const cached = usage?.prompt_tokens_details?.cached_tokens ?? 0;
  return cached === 0 ? ""
    : `; ${cached} of ${usage.prompt_tokens} prompt tokens were cached`;
}
