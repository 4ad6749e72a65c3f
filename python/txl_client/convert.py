"""Messages of the API as the package's dataclasses."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import operator
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from txl_client import events, scores

T = TypeVar("T")
Reader = Callable[[Any], Any]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def proto_name(field: dataclasses.Field[Any]) -> str:
    """The name of a dataclass's field in the API."""
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
    get = operator.attrgetter(name)
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


def _value(hint: Any) -> Reader:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return functools.partial(from_message, hint)
    if hint is datetime.datetime:
        return lambda stamp: _EPOCH + _timedelta(stamp)
    if hint is datetime.timedelta:
        return _timedelta
    return lambda value: value


def _timedelta(message: Any) -> datetime.timedelta:
    """Of a Duration, or of a Timestamp since 1970."""
    return datetime.timedelta(seconds=message.seconds,
                              microseconds=message.nanos // 1000)


def _enum_name(message: Any, name: str) -> str:
    """SESSION_STATE_IDLE of the enum SessionState is "IDLE".

    A value that only a newer server knows is the enum's UNSPECIFIED.
    """
    described = message.DESCRIPTOR.fields_by_name[name].enum_type
    prefix = described.values_by_number[0].name.removesuffix("UNSPECIFIED")
    value = described.values_by_number.get(getattr(message, name))
    return value.name.removeprefix(prefix) if value else "UNSPECIFIED"


# Thousands of tokens come in a second, so they are not read by reflection.


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
