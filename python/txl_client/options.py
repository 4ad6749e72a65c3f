"""What a turn can be asked for, and the request of it."""

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
    timeout: checks.Seconds | None  # of all attempts together; None: any time


_SAMPLING = frozenset(field.name for field in
                      sampling_pb2.SamplingParams.DESCRIPTOR.fields)
_STOP = frozenset(field.name for field in
                  sampling_pb2.StopConditions.DESCRIPTOR.fields)
_OUTPUT = frozenset(field.name for field in
                    sampling_pb2.OutputOptions.DESCRIPTOR.fields)
_REQUEST = frozenset(("request_id", "expected_position"))


def set_input(message: Any, name: str, value: Prompt) -> None:
    """Puts the argument `name`, text or ids, into `text` or `tokens`."""
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        message.text = checks.text(name, value)
        return
    ids = checks.token_ids(name, value, "text or a list of token ids")
    # CopyFrom, so that an empty list is one too, and the server says so.
    message.tokens.CopyFrom(token_pb2.TokenIds(ids=ids))


def generate_request(
        session_id: str, prompt: Prompt | None,
        options: Mapping[str, Any]) -> generation_service_pb2.GenerateRequest:
    """The request of a turn. TypeError for an option that there is not."""
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
    for names, message in ((_SAMPLING, "sampling"), (_STOP, "stop"),
                           (_OUTPUT, "output"), (_REQUEST, "")):
        if name in names:
            target = getattr(request, message) if message else request
            break
    else:
        raise TypeError(f"generate() has no option {name!r}")
    if name.startswith("stop_") and isinstance(value, (set, frozenset)):
        value = list(value)  # the order of stops says nothing
    if name == "logit_bias":
        target.logit_bias.update(_logit_bias(value))
    elif name == "stop_texts":
        target.stop_texts.extend(checks.texts(name, value))
    elif name == "stop_token_ids":
        target.stop_token_ids.extend(checks.token_ids(name, value))
    elif name == "request_id":
        target.request_id = checks.name_of(name, value)
    else:
        checks.put(target, name, value)


def _logit_bias(value: Any) -> dict[int, float]:
    if not isinstance(value, Mapping):
        raise checks.kind_error("logit_bias",
                                "a dictionary of token ids to numbers", value)
    return {checks.token_id("key of logit_bias", token_id):
            checks.number(f"logit_bias[{token_id}]", bias)
            for token_id, bias in value.items()}
