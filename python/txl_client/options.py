"""What a turn can be asked for, and the request of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, Union

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
    seed: int
    min_tokens: int

    max_tokens: int
    stop_texts: Sequence[str]
    stop_token_ids: Sequence[int]
    ignore_end_token: bool
    include_stop_text: bool

    logprobs: int  # alternatives reported for each token
    include_token_bytes: bool
    max_tokens_per_message: int

    request_id: str  # default: a random one
    expected_position: int
    timeout: float  # seconds, of all attempts together


_SAMPLING = frozenset(field.name for field in
                      sampling_pb2.SamplingParams.DESCRIPTOR.fields)
_STOP = frozenset(field.name for field in
                  sampling_pb2.StopConditions.DESCRIPTOR.fields)
_OUTPUT = frozenset(field.name for field in
                    sampling_pb2.OutputOptions.DESCRIPTOR.fields)
_REQUEST = frozenset(("request_id", "expected_position"))


def ids_of(ids: Iterable[int]) -> token_pb2.TokenIds:
    """Token ids, of whatever kind of integers."""
    return token_pb2.TokenIds(ids=[int(token_id) for token_id in ids])


def set_input(message: Any, value: Prompt | None, ids: str = "tokens") -> None:
    """Puts text or ids into a message with the fields `text` and `ids`."""
    if value is None:
        return
    if isinstance(value, str):
        message.text = value
        return
    if isinstance(value, bytes):
        raise TypeError("bytes are no text: decode them, or give token ids")
    # CopyFrom, so that an empty list is one too, and the server says so.
    getattr(message, ids).CopyFrom(ids_of(value))


def generate_request(
        session_id: str, prompt: Prompt | None,
        options: Mapping[str, Any]) -> generation_service_pb2.GenerateRequest:
    """The request of a turn. TypeError for an option that there is not."""
    request = generation_service_pb2.GenerateRequest(session_id=session_id)
    set_input(request, prompt)
    for name, value in options.items():
        if name == "timeout" or value is None:
            continue
        _set_option(request, name, value)
    return request


def _set_option(request: Any, name: str, value: Any) -> None:
    for names, message in ((_SAMPLING, "sampling"), (_STOP, "stop"),
                           (_OUTPUT, "output"), (_REQUEST, "")):
        if name in names:
            target = getattr(request, message) if message else request
            break
    else:
        raise TypeError(f"generate() has no option {name!r}")
    if name == "stop_texts" and isinstance(value, str):
        raise TypeError("stop_texts: must be a list of texts")
    try:
        if isinstance(value, Mapping):
            getattr(target, name).update(value)
        elif name in ("stop_texts", "stop_token_ids"):
            getattr(target, name).extend(value)
        else:
            setattr(target, name, value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from error
