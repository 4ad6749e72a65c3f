"""Checks of a caller's arguments, made before anything is sent.

Every error names the argument: TypeError for a value of a wrong type,
ValueError for one that no request can hold. The server itself refuses what is
too large for it, or outside an option's range.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import math
import numbers
import operator
import os
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

Seconds = float | datetime.timedelta

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_ID = (1 << 32) - 1
# 31 years; clocks and headers of a call do not hold much longer times.
_NO_LIMIT_SECONDS = 1e9
_LONGEST = datetime.timedelta(seconds=315_576_000_000)  # of a Duration


class _Unnamed:
    def __repr__(self) -> str:
        return "UNNAMED"


# The default of an argument that names a session. An empty text or None is a
# mistake there, not a request for a session without a name.
UNNAMED: Any = _Unnamed()


def kind_error(name: str, wanted: str, value: Any) -> TypeError:
    """The TypeError for a value of a wrong type."""
    shown = ("" if isinstance(value, int) and value.bit_length() > 1000
             else f"{reprlib.repr(value)} ")
    return TypeError(
        f"{name}: must be {wanted}, is {shown}({type(value).__name__})")


def is_missing(value: Any) -> bool:
    """True for None, NaN of any kind, NaT and pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA compares to NA, which has no truth value
        return True
    except ValueError:  # of an array, which is not missing
        return False


def _plain(value: Any) -> Any:
    """The Python value of a scalar of NumPy or torch.

    None for an array, and for a time, whose integer may have any unit.
    """
    if not hasattr(value, "shape"):
        return value
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return None if value.shape != () or kind in ("m", "M") else value.item()


def integer(name: str, value: Any, least: int, most: int | None = None) -> int:
    """An integer in [least, most], of any integer type."""
    plain = _plain(value)
    try:
        if isinstance(plain, bool):
            raise TypeError
        whole = operator.index(plain)
    except TypeError:
        raise kind_error(name, "an integer", value) from None
    if whole < least or (most is not None and whole > most):
        wanted = (f"at least {least}" if most is None
                  else f"in [{least}, {most}]")
        shown = f", is {whole}" if whole.bit_length() <= 128 else ""
        raise ValueError(f"{name}: must be {wanted}{shown}")
    return whole


def number(name: str, value: Any, wanted: str = "a number") -> float:
    """A number; it may be infinite or NaN."""
    plain = _plain(value)
    if (isinstance(plain, bool)
            or not isinstance(plain, (numbers.Real, decimal.Decimal))):
        raise kind_error(name, wanted, value)
    try:
        return float(plain)
    except OverflowError:
        raise ValueError(f"{name}: is larger than any float") from None


def flag(name: str, value: Any) -> bool:
    """True or False."""
    plain = _plain(value)
    if not isinstance(plain, bool):
        raise kind_error(name, "True or False", value)
    return plain


def text(name: str, value: Any) -> str:
    """A text that can be encoded in UTF-8."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name}: bytes are not text: decode them")
    if not isinstance(value, str):
        raise kind_error(name, "text", value)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name}: character {error.start} is half of a surrogate pair, "
            "which is not text") from None
    return value


def name_of(name: str, value: Any) -> str:
    """An id of a session or a request."""
    if not _NAME.fullmatch(text(name, value)):
        raise ValueError(f"{name}: must be 1 to 64 characters of A-Z a-z 0-9 "
                         f"_ -, is {reprlib.repr(value)}")
    return str(value)


def optional_name(name: str, value: Any) -> str:
    """An id; the empty text for UNNAMED."""
    return "" if value is UNNAMED else name_of(name, value)


def path(name: str, value: Any) -> str:
    """A path in the file system."""
    if not isinstance(value, (str, os.PathLike)):
        raise kind_error(name, "a path", value)
    if not value:
        raise ValueError(f"{name}: is empty")
    return text(name, os.fspath(value))


def is_frame(value: Any) -> bool:
    """True for a data frame of any library."""
    return hasattr(type(value), "columns")


def listed(name: str, value: Any, wanted: str) -> Iterable[Any]:
    """The items of a list, an array, a column or an iterator.

    TypeError for texts, bytes, dictionaries and data frames, whose items are
    not meant one by one, and for sets, which have no order.
    """
    if isinstance(value, (str, bytes, bytearray, memoryview, Mapping)):
        raise kind_error(name, wanted, value)
    if isinstance(value, (set, frozenset)):
        raise TypeError(f"{name}: must be {wanted}: a set has no order")
    if is_frame(value):
        raise TypeError(f"{name}: must be {wanted}, is a data frame: give one "
                        "of its columns")
    items = value
    for to_list in ("tolist", "to_list", "to_pylist"):
        if hasattr(value, to_list):  # a list of Python's own types
            items = getattr(value, to_list)()
            break
    if not isinstance(items, Iterable):
        raise kind_error(name, wanted, value)
    return items


def texts(name: str, value: Any) -> list[str]:
    """Texts, in their order."""
    return [text(f"{name}[{index}]", each) for index, each in enumerate(
        listed(name, value, "a list of texts"))]


def token_id(name: str, value: Any) -> int:
    """A token id; only the server knows the vocabulary."""
    return integer(name, value, 0, _MAX_ID)


def token_ids(name: str, value: Any,
              wanted: str = "a list of token ids") -> list[int]:
    """Token ids, in their order."""
    return [each if type(each) is int and 0 <= each <= _MAX_ID
            else token_id(f"{name}[{index}]", each)
            for index, each in enumerate(listed(name, value, wanted))]


def seconds(name: str, value: Any) -> float:
    """Seconds; ValueError for NaN."""
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    read = number(name, value, "seconds or a timedelta")
    if math.isnan(read):
        raise ValueError(f"{name}: must be a number of seconds, is NaN")
    return read


def timeout(name: str, value: Any) -> float | None:
    """Seconds that a call may take; None and infinity: no limit."""
    if value is None:
        return None
    read = seconds(name, value)
    return None if read >= _NO_LIMIT_SECONDS else read


def duration(name: str, value: Any) -> datetime.timedelta:
    """Seconds, or a timedelta."""
    try:
        read = (value if isinstance(value, datetime.timedelta)
                else datetime.timedelta(seconds=seconds(name, value)))
    except OverflowError:
        read = datetime.timedelta.max
    if not -_LONGEST <= read <= _LONGEST:
        raise ValueError(f"{name}: must be at most 10,000 years")
    return read


def _integers(bits: int, least: int = 0) -> Callable[[str, Any], int]:
    return functools.partial(integer, least=least,
                             most=least + (1 << bits) - 1)


_CHECKS: dict[int, Callable[[str, Any], Any]] = {
    FieldDescriptor.CPPTYPE_INT32: _integers(32, -1 << 31),
    FieldDescriptor.CPPTYPE_INT64: _integers(64, -1 << 63),
    FieldDescriptor.CPPTYPE_UINT32: _integers(32),
    FieldDescriptor.CPPTYPE_UINT64: _integers(64),
    FieldDescriptor.CPPTYPE_DOUBLE: number,
    FieldDescriptor.CPPTYPE_FLOAT: number,
    FieldDescriptor.CPPTYPE_BOOL: flag,
    FieldDescriptor.CPPTYPE_STRING: text,
}


def put(message: Any, field: str, value: Any) -> None:
    """Sets a field of one value; errors name it as the API does."""
    kind = message.DESCRIPTOR.fields_by_name[field].cpp_type
    setattr(message, field, _CHECKS[kind](field, value))


def filled(message: Any, **fields: Any) -> Any:
    """The message, with these fields set by put()."""
    for field, value in fields.items():
        put(message, field, value)
    return message
