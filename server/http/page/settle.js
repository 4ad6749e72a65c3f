// Brings a session to what the page shows of a turn that was stopped: the
// server may have handed out tokens that the page did not read any more.

import { count } from "./rates.js";
import { sleep } from "./retry.js";

// How often a session that is still busy with the turn is asked, and how long
// lies between.
const TRIES = 20;
const WAIT_MS = 100;

// `shown` are the turn's tokens that the page has. A session that somebody else
// has used since, or that is gone, stays as it is.
export async function settleSession(api, request, shown) {
  const session = await endOfTurn(api, request.session_id);
  const turn = session?.last_turn;
  if (turn?.request_id !== request.request_id) return;
  if (count(turn.generated_tokens) <= shown) return;
  await api.rewindSession(request.session_id,
    count(turn.start_position) + count(turn.prompt_tokens) + shown);
}

async function endOfTurn(api, id) {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { session } = await api.sessionState(id).catch(() => ({}));
    if (session?.state !== "SESSION_STATE_BUSY") return session;
    await sleep(WAIT_MS);
  }
  return undefined;
}
