"""Messages of the API as the package's dataclasses."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from txl_client import events, scores

T = TypeVar("T")
Reader = Callable[[Any], Any]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def proto_name(field: dataclasses.Field[Any]) -> str:
    """The name that a dataclass' field has in the API."""
    return str(field.metadata.get("proto", field.name))


def from_message(cls: type[T], message: Any) -> T:
    """The dataclass `cls` of a message with fields of the same names."""
    key: Any = cls
    return cls(**{name: read(message) for name, read in _readers(key)})


@functools.cache
def _readers(cls: Any) -> tuple[tuple[str, Reader], ...]:
    hints = typing.get_type_hints(cls)
    return tuple((field.name, _reader(proto_name(field), hints[field.name]))
                 for field in dataclasses.fields(cls))


def _reader(name: str, hint: Any) -> Reader:
    get = functools.partial(_get, name)
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        value = _value(arguments[0])
        return lambda message: tuple(value(item) for item in get(message))
    if typing.get_origin(hint) is dict:
        return lambda message: dict(get(message))
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        value = _value(arguments[0])
        return lambda message: (value(get(message))
                                if message.HasField(name) else None)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return lambda message: hint(_enum_name(message, name))
    value = _value(hint)
    return lambda message: value(get(message))


def _get(name: str, message: Any) -> Any:
    return getattr(message, name)


def _value(hint: Any) -> Reader:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return functools.partial(from_message, hint)
    if hint is datetime.datetime:
        return lambda stamp: (_EPOCH + datetime.timedelta(
            seconds=stamp.seconds, microseconds=stamp.nanos // 1000))
    if hint is datetime.timedelta:
        return lambda duration: datetime.timedelta(
            seconds=duration.seconds, microseconds=duration.nanos // 1000)
    return lambda value: value


def _enum_name(message: Any, name: str) -> str:
    """SESSION_STATE_IDLE of the enum SessionState is "IDLE".

    A value that a newer server knows and this package does not is the enum's
    UNSPECIFIED.
    """
    described = message.DESCRIPTOR.fields_by_name[name].enum_type
    prefix = described.values_by_number[0].name.removesuffix("UNSPECIFIED")
    value = described.values_by_number.get(getattr(message, name))
    return value.name.removeprefix(prefix) if value else "UNSPECIFIED"


# Tokens come in thousands a second; they are read by hand.


def top_logprobs(items: Any) -> tuple[events.TokenLogprob, ...]:
    """Alternatives of a position."""
    return tuple(events.TokenLogprob(item.token_id, item.logprob)
                 for item in items)


def token(message: Any) -> events.Token:
    """A generated token."""
    return events.Token(message.index, message.token_id, message.text,
                        message.logprob, top_logprobs(message.top_logprobs),
                        message.token_bytes, message.held_back)


def scored_token(message: Any) -> scores.ScoredToken:
    """A token of a scored input."""
    return scores.ScoredToken(
        message.token_id,
        message.logprob if message.HasField("logprob") else None,
        message.text, top_logprobs(message.top_logprobs))
