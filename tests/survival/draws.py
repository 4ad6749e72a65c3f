"""Random requests."""

import math

PROMPTS = ["First Citizen:", "O, ", "ROMEO:\nMy love is ", "the king", "?",
           "KING RICHARD III:\nNow is the winter of our discontent\n" * 3]
STOPS = ["the", "\n\n", "and ", "you", ":\n", "e"]
MOST_TOKENS = 200


def sampling(rng, max_tokens):
    fields = {"temperature": rng.choice([0, 0.5, 0.8, 1, 1.4])}
    others = {
        "topK": lambda: rng.randint(1, 40),
        "topP": lambda: round(rng.uniform(0.5, 1), 3),
        "minP": lambda: round(rng.uniform(0, 0.1), 3),
        "typicalP": lambda: round(rng.uniform(0.5, 1), 3),
        "repetitionPenalty": lambda: round(rng.uniform(1, 1.5), 3),
        "presencePenalty": lambda: round(rng.uniform(-1, 1), 3),
        "frequencyPenalty": lambda: round(rng.uniform(-1, 1), 3),
        "penaltyWindow": lambda: rng.randint(0, 300),
        "logitBias": lambda: {str(rng.randint(0, 60)): rng.uniform(-5, 5)},
        "minTokens": lambda: rng.randint(0, max_tokens),
    }
    for name, draw in others.items():
        if rng.random() < 0.2:
            fields[name] = draw()
    if rng.random() < 0.8:
        fields["seed"] = str(rng.getrandbits(64))
    return fields


def stop(rng, max_tokens):
    fields = {"maxTokens": max_tokens}
    if rng.random() < 0.3:
        fields["stopTexts"] = rng.sample(STOPS, rng.randint(1, 3))
        fields["includeStopText"] = rng.random() < 0.5
    if rng.random() < 0.1:
        fields["stopTokenIds"] = [rng.randint(0, 60)]
    return fields


def prompt(rng, vocabulary, texts):
    """(the request's part, its token ids); `texts`: the ids of each text."""
    kind = rng.random()
    if kind < 0.4:
        text = rng.choice(list(texts))
        return {"text": text}, list(texts[text])
    ids = [rng.randrange(vocabulary)
           for _ in range(int(math.exp(rng.uniform(0, math.log(100)))))]
    return {"tokens": {"ids": ids}}, ids


def turn(rng, vocabulary, texts, position):
    """(fields without a session and a name, the prompt's ids)."""
    fields, ids = {}, []
    if position == 0 or rng.random() < 0.7:
        fields, ids = prompt(rng, vocabulary, texts)
    max_tokens = int(math.exp(rng.uniform(0, math.log(MOST_TOKENS + 1))))
    fields["sampling"] = sampling(rng, max_tokens)
    fields["stop"] = stop(rng, max_tokens)
    if rng.random() < 0.3:
        fields["output"] = {"logprobs": rng.randint(0, 4),
                            "maxTokensPerMessage": rng.choice([1, 8])}
    return fields, ids
