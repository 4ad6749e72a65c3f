// A MIDI file as a prompt: the server says it in the model's events.

import { ApiError } from "./api.js";
import { count } from "./rates.js";

// Reads a File: {text, ids, said}; `said` is for people. `limits` are those of
// GetModel. Throws ApiError.
export async function readMidiPrompt(api, file, limits) {
  const bytes = await bytesOf(file, count(limits.max_prompt_bytes));
  const { tokens, left_out: leftOut } = await api.tokenizeMidi(base64(bytes));
  const most = count(limits.max_prompt_tokens);
  const texts = [];
  for (const part of pieces(tokens, most)) {
    texts.push((await api.detokenize(part)).prompt);
  }
  return { text: texts.join(" "), ids: tokens,
    said: summaryOf(file.name, tokens.length, leftOut) };
}

async function bytesOf(file, most) {
  const problem = (message, code) =>
    new ApiError(`${file.name}: ${message}`, { param: "midi", code });
  if (file.size > most) {
    throw problem(`${file.size} bytes, at most ${most}`, "OVER_LIMIT");
  }
  try {
    return new Uint8Array(await file.arrayBuffer());
  } catch {
    // A folder, or a file that has gone.
    throw problem("cannot be read", "FIELD_INVALID");
  }
}

export function base64(bytes) {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

// "song.mid: 812 tokens. Left out: Note On_109 (2)."
export function summaryOf(name, tokens, leftOut) {
  const parts = leftOut.map((part) => `${part.what} (${part.count})`);
  const rest = parts.length === 0 ? "" : ` Left out: ${parts.join(", ")}.`;
  return `${name}: ${tokens} tokens.${rest}`;
}

// The ids in lists of `most` ids, the last one possibly shorter.
export function pieces(ids, most) {
  return Array.from({ length: Math.ceil(ids.length / most) }, (_, i) =>
    ids.slice(i * most, (i + 1) * most));
}
