// How probabilities and tokens are shown. Log-probabilities are natural ones.

// The class of a token's span: "p0" up to 10 %, ..., "p9" from 90 % on; "" for
// a token whose probability was not asked for.
export function probabilityClass(logprob) {
  if (!Number.isFinite(logprob)) return "";
  // What was a tenth before it was a logarithm is one again.
  const tenths = Math.floor(10 * Math.exp(logprob) + 1e-9);
  return `p${Math.min(9, Math.max(0, tenths))}`;
}

// "31.4 %", with three digits that count.
export function percent(logprob) {
  if (!Number.isFinite(logprob)) return "unknown";
  const value = 100 * Math.exp(logprob);
  if (value === 0) return "0 %";
  if (value < 1e-4) return "< 0.0001 %";
  return `${Number(value.toPrecision(3))} %`;
}

const SIGNS = { " ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥" };

// A token's text with every space and line break to be seen, and without
// characters that would change the order of what stands around them.
export function visibleText(text) {
  if (text === "") return "(no text)";
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp} ]/gu, (character) => {
    const code = character.codePointAt(0).toString(16).toUpperCase();
    return SIGNS[character] ?? `U+${code.padStart(4, "0")}`;
  });
}
