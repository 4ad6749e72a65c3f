"""A turn in a notebook, with tokens coloured by their probability."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable

CLASSES = 10

# From unlikely to likely; all are light, so that black text is readable.
_COLORS = ("#ffb3a7", "#ffc2a6", "#ffd2a6", "#ffe1a8", "#fff0ad",
           "#f2f3b4", "#e0f0bd", "#cdeec8", "#bdeacb", "#aee5cd")


def _rule(number: int) -> str:
    # Unlikely tokens are also underlined, for readers who do not see colors.
    # The line is thicker the less likely the token was.
    line = max(0, 3 - number)
    border = f";border-bottom:{line}px solid #a00" if line else ""
    return (f".txl-text .p{number}{{background:{_COLORS[number]};"
            f"color:#000{border}}}")


STYLE = (".txl-text{white-space:pre-wrap;font-family:monospace;"
         "line-height:1.6}" + "".join(_rule(n) for n in range(CLASSES)))


def _probability(logprob: float) -> float:
    return math.exp(min(logprob, 0.0))


def probability_class(logprob: float) -> int:
    """0 for NaN and a probability below 0.1, ..., 9 for 0.9 and above."""
    probability = _probability(logprob)
    return (0 if math.isnan(probability)
            else min(int(probability * CLASSES), CLASSES - 1))


def _token(text: str, token_id: int, logprob: float) -> str:
    title = f"id {token_id}, p {_probability(logprob):.4f}"
    return (f'<span class="p{probability_class(logprob)}" title="{title}">'
            f"{html.escape(text)}</span>")


def page(tokens: Iterable[tuple[str, int, float]], rest: str) -> str:
    """Markup of (text, id, logprob) and of the text that was held back.

    A token without text is not shown: its text comes with a later one.
    """
    spans = "".join(_token(*token) for token in tokens if token[0])
    return (f'<style>{STYLE}</style><div class="txl-text">{spans}'
            f"{html.escape(rest)}</div>")
