// Waiting for a server that asks for it.

// How often one request is sent.
const TRIES = 5;

// Does `action` until it succeeds, until the error is one that another try does
// not help, or until it was tried often enough. Waits in between as
// `waitBefore(error)` says in milliseconds, null for no other try, and tells
// `onWait(message, milliseconds)`. Throws AbortError where `signal` says so.
export async function patiently(action,
  { signal, onWait, waitBefore = askedWait }) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await action();
    } catch (error) {
      const wait = waitBefore(error);
      if (wait === null || tries >= TRIES) throw error;
      onWait(error.message, wait);
      await sleep(wait, signal);
    }
  }
}

// What the server asked for; nothing was done for a request so refused.
export function askedWait(error) {
  return error.status === 429 || error.status === 503
    ? error.retryAfter ?? null : null;
}

// Waits; throws AbortError at once when `signal` says so.
export function sleep(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
