"""The options of a turn, and its request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Union

from txl_client import checks
from txl_client._proto import (generation_service_pb2, sampling_pb2,
                               token_pb2)

# Text, or token ids.
Prompt = Union[str, Sequence[int]]


class TurnOptions(TypedDict, total=False):
    """Options of generate(); docs/api.md has ranges and defaults."""

    temperature: float  # 0: always the most probable token
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    penalty_window: int
    logit_bias: Mapping[int, float]
    allowed_token_ids: Sequence[int]  # only these are drawn
    follow_kinds: bool  # only what the model's kinds of tokens let follow
    seed: int
    min_tokens: int

    max_tokens: int
    stop_texts: Sequence[str]
    stop_token_ids: Sequence[int]
    token_count: Mapping[str, int]  # {"id": ..., "count": ...} ends the turn
    ignore_end_token: bool
    include_stop_text: bool

    logprobs: int  # alternatives reported for each token
    logprob_token_ids: Sequence[int]  # reported behind them
    include_token_bytes: bool
    max_tokens_per_message: int

    request_id: str  # default: a random one
    expected_position: int
    timeout: checks.Seconds | None  # of all attempts together; None: no limit


# The part of the request that has an option; "": the request itself.
_PART_OF = {field.name: part for part, message in (
    ("sampling", sampling_pb2.SamplingParams),
    ("stop", sampling_pb2.StopConditions),
    ("output", sampling_pb2.OutputOptions))
    for field in message.DESCRIPTOR.fields}
_PART_OF |= {"request_id": "", "expected_position": ""}
_ID_LISTS = ("allowed_token_ids", "stop_token_ids", "logprob_token_ids")
# Their order has no effect.
_UNORDERED = ("allowed_token_ids", "stop_token_ids", "stop_texts")


def set_input(message: Any, name: str, value: Prompt) -> None:
    """Sets `text` or `tokens` from the argument `name`, a text or ids."""
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        message.text = checks.text(name, value)
        return
    ids = checks.token_ids(name, value, "text or a list of token ids")
    # CopyFrom sets `tokens` also to an empty list, which the server refuses.
    message.tokens.CopyFrom(token_pb2.TokenIds(ids=ids))


def generate_request(
        session_id: str, prompt: Prompt | None,
        options: Mapping[str, Any]) -> generation_service_pb2.GenerateRequest:
    """The request of a turn. TypeError for an unknown option."""
    request: generation_service_pb2.GenerateRequest = checks.filled(
        generation_service_pb2.GenerateRequest(), session_id=session_id)
    if prompt is not None:
        set_input(request, "prompt", prompt)
    for name, value in options.items():
        if name == "timeout":
            checks.timeout(name, value)
        elif value is not None:
            _set_option(request, name, value)
    return request


def _set_option(request: Any, name: str, value: Any) -> None:
    part = _PART_OF.get(name)
    if part is None:
        raise TypeError(f"generate() has no option {name!r}")
    target = getattr(request, part) if part else request
    if name in _UNORDERED and isinstance(value, (set, frozenset)):
        value = list(value)
    if name == "logit_bias":
        target.logit_bias.update(_logit_bias(value))
    elif name == "stop_texts":
        target.stop_texts.extend(checks.texts(name, value))
    elif name in _ID_LISTS:
        getattr(target, name).extend(checks.token_ids(name, value))
    elif name == "token_count":
        _set_token_count(target.token_count, value)
    elif name == "request_id":
        target.request_id = checks.name_of(name, value)
    else:
        checks.put(target, name, value)


def _set_token_count(message: Any, value: Any) -> None:
    if not isinstance(value, Mapping) or set(value) != {"id", "count"}:
        raise checks.kind_error("token_count",
                                "a dictionary of id and count", value)
    message.id = checks.token_id("token_count.id", value["id"])
    checks.put(message, "count", value["count"])


def _logit_bias(value: Any) -> dict[int, float]:
    if not isinstance(value, Mapping):
        raise checks.kind_error("logit_bias",
                                "a dictionary of token ids to numbers", value)
    return {checks.token_id("key of logit_bias", token_id):
            checks.number(f"logit_bias[{token_id}]", bias)
            for token_id, bias in value.items()}
