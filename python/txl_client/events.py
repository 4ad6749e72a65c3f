"""A turn's events, and the turn as a whole."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Union

from txl_client import html


class FinishReason(str, enum.Enum):
    """Why a turn ended."""

    UNSPECIFIED = "UNSPECIFIED"
    MAX_TOKENS = "MAX_TOKENS"
    STOP_TEXT = "STOP_TEXT"
    STOP_TOKEN = "STOP_TOKEN"
    END_TOKEN = "END_TOKEN"
    # The server is shutting down; the session can be continued.
    SERVER_DRAIN = "SERVER_DRAIN"


@dataclass(frozen=True)
class SamplingParams:
    """How tokens are chosen; docs/api.md has ranges and defaults."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    penalty_window: int
    logit_bias: dict[int, float]
    seed: int
    min_tokens: int
    allowed_token_ids: tuple[int, ...] = ()  # empty: all
    follow_kinds: bool = False


@dataclass(frozen=True)
class TokenCount:
    """An occurrence of a token that ends a turn."""

    id: int
    count: int


@dataclass(frozen=True)
class StopConditions:
    """When a turn ends."""

    max_tokens: int
    stop_texts: tuple[str, ...]
    stop_token_ids: tuple[int, ...]
    ignore_end_token: bool
    include_stop_text: bool
    token_count: TokenCount | None = None


@dataclass(frozen=True)
class Started:
    """The turn runs, with these parameters."""

    session_id: str  # empty: a temporary session
    position: int  # tokens that the session held before
    prompt_token_count: int
    seed: int  # of the sampling, also if the server chose it
    replayed_token_count: int
    sampling: SamplingParams
    stop: StopConditions
    model_fingerprint: str

    @property
    def text(self) -> str:
        """Empty; every event has a text."""
        return ""


@dataclass(frozen=True)
class TokenLogprob:
    """An alternative of a position."""

    id: int = field(metadata={"proto": "token_id"})
    logprob: float


@dataclass(frozen=True)
class Token:
    """One generated token."""

    index: int  # 0, 1, ... in the turn, without a gap
    id: int
    text: str  # that became final with this token; may be empty
    logprob: float  # natural, before any sampling change
    # The most probable ones, best first, then those of logprob_token_ids.
    top_logprobs: tuple[TokenLogprob, ...] = ()
    token_bytes: bytes = b""  # on include_token_bytes
    # Characters of earlier tokens that stop texts held back when this token
    # was sampled: its own text begins so many characters after the text before.
    held_back: int = 0


@dataclass(frozen=True)
class Usage:
    """Tokens of the turn, with all attempts."""

    prompt_tokens: int
    generated_tokens: int
    cached_tokens: int = 0  # of the prompt; not fed, their state was known
    rebuilt_tokens: int = 0  # of the session; fed again, its state was lost


@dataclass(frozen=True)
class Timing:
    """Seconds of the turn's last attempt."""

    queued_seconds: float
    prefill_seconds: float
    decode_seconds: float


@dataclass(frozen=True)
class Finished:
    """The turn is over."""

    reason: FinishReason
    position: int  # tokens that the session holds now
    text: str  # that was held back
    matched_stop_text: str
    usage: Usage
    timing: Timing


Event = Union[Started, Token, Finished]


@dataclass(frozen=True)
class Generation:
    """A whole turn, or the part of it that has arrived."""

    started: Started | None
    tokens: tuple[Token, ...]
    finished: Finished | None  # None: the turn has not ended

    @property
    def text(self) -> str:
        """The turn's text."""
        rest = self.finished.text if self.finished else ""
        return "".join(token.text for token in self.tokens) + rest

    @property
    def token_ids(self) -> list[int]:
        """The ids of the tokens, stop and end tokens included."""
        return [token.id for token in self.tokens]

    @property
    def sum_logprob(self) -> float:
        """Natural logarithm of the model's probability of all tokens."""
        return sum(token.logprob for token in self.tokens)

    @property
    def seed(self) -> int | None:
        """The seed with which the same request gives the same tokens."""
        return self.started.seed if self.started else None

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the turn ended; None: it has not."""
        return self.finished.reason if self.finished else None

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        rest = self.finished.text if self.finished else ""
        return html.page(((token.text, token.id, token.logprob)
                          for token in self.tokens), rest)
