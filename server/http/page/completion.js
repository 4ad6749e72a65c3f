// What the events of a streamed completion say.

// Reads the data of one event. Returns one of
//   {done: true}                                      the end of the stream
//   {error: {message, param, code}}                   the turn failed
//   {tokens: [...], finishReason, usage}              anything else
// A token is {id, text, name, logprob, top}: `text` is what it adds to the
// turn's text, `name` its own spelling; `id` is null for text that was held
// back and belongs to tokens before. `top` is [{text, logprob}], most probable
// first.
export function readEvent(data) {
  if (data === "[DONE]") return { done: true };
  const chunk = JSON.parse(data);
  if (chunk.error) return { error: chunk.error };
  const choice = chunk.choices?.[0];
  return {
    tokens: choice ? readTokens(choice) : [],
    finishReason: choice?.finish_reason ?? null,
    usage: chunk.usage ?? null,
  };
}

function readTokens(choice) {
  const ids = choice.token_ids ?? [];
  const text = choice.text ?? "";
  if (ids.length === 0) {
    return text === "" ? [] : [{ id: null, text, name: text, top: [] }];
  }
  const names = choice.logprobs?.tokens ?? [];
  const texts = splitText(text, names, ids.length);
  return ids.map((id, i) => ({
    id,
    text: texts[i],
    name: names[i] ?? texts[i],
    logprob: choice.logprobs?.token_logprobs?.[i] ?? undefined,
    top: readTop(choice.logprobs?.top_logprobs?.[i]),
  }));
}

// The text of several tokens in one event: their own spellings where these make
// up the text, else all of it stands with the last token.
function splitText(text, names, count) {
  if (names.length === count && names.join("") === text) return names;
  return [...Array(count - 1).fill(""), text];
}

function readTop(top) {
  return Object.entries(top ?? {})
    .map(([text, logprob]) => ({ text, logprob }))
    .sort((a, b) => b.logprob - a.logprob);
}
