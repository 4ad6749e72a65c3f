"""Log-probabilities of given texts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from txl_client.events import TokenLogprob, Usage

_NO_USAGE = Usage(prompt_tokens=0, generated_tokens=0)


@dataclass(frozen=True)
class ScoredToken:
    """A token of the input with its log-probability."""

    id: int
    logprob: float | None  # None: the first token without context
    text: str
    # The most probable ones, best first, then those of logprob_token_ids.
    top_logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True)
class Score:
    """The score of one text."""

    tokens: tuple[ScoredToken, ...]
    sum_logprob: float  # natural logarithm, of the tokens that have one
    # Of the session after which the text was scored; 0 without a session.
    position: int = 0
    # No part of what two of them are compared by.
    usage: Usage = field(default=_NO_USAGE, compare=False)

    @property
    def token_count(self) -> int:
        """Tokens of the text."""
        return len(self.tokens)

    @property
    def perplexity(self) -> float:
        """Of the tokens that have a log-probability; NaN if none has."""
        count = sum(token.logprob is not None for token in self.tokens)
        return math.exp(-self.sum_logprob / count) if count else math.nan


@dataclass(frozen=True)
class AlternativeScore:
    """The score of one continuation of a context."""

    sum_logprob: float
    token_count: int
    tokens: tuple[ScoredToken, ...] = ()  # on return_tokens


@dataclass(frozen=True)
class Appended:
    """A session after an append."""

    position: int  # tokens that the session holds now
    scored: tuple[ScoredToken, ...] = ()  # on return_logprobs
    sum_logprob: float = 0.0
    # No part of what two of them are compared by.
    usage: Usage = field(default=_NO_USAGE, compare=False)
