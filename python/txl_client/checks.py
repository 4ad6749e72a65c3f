"""What a caller gives, checked before anything is sent.

Every error names the argument: TypeError for a value of another kind,
ValueError for one that no request can hold. What is too large for the server,
or out of an option's range, is for the server to say.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
import operator
import os
import re
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

Seconds = float | datetime.timedelta

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_ID = (1 << 32) - 1
# 31 years: longer ones are beyond what clocks and headers of a call hold.
_NO_LIMIT_SECONDS = 1e9
_LONGEST = datetime.timedelta(seconds=315_576_000_000)  # of a Duration

_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-1 << 31, (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-1 << 63, (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}


class _Unnamed:
    def __repr__(self) -> str:
        return "UNNAMED"


# The default of an argument that names a session: an empty text, or None, is a
# mistake there and not the wish for a session without a name.
UNNAMED: Any = _Unnamed()


def kind_error(name: str, wanted: str, value: Any) -> TypeError:
    """The TypeError of a value of another kind."""
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
    except TypeError:  # NA's answer to any question is NA
        return True
    except ValueError:  # of an array, which is a value
        return False


def _plain(value: Any) -> Any:
    """The Python value of a scalar of NumPy or torch.

    Times stay as they are: theirs may be an integer of any unit.
    """
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if getattr(value, "shape", None) != () or kind in ("m", "M"):
        return value
    return value.item()


def integer(name: str, value: Any, least: int, most: int | None = None) -> int:
    """An integer in [least, most], of whatever type of integers."""
    plain = _plain(value)
    if isinstance(plain, bool) or hasattr(plain, "shape"):
        raise kind_error(name, "an integer", value)
    try:
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
    if (isinstance(plain, bool) or hasattr(plain, "shape")
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
    """A text that UTF-8 can hold."""
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
    """An id, or of UNNAMED the empty text."""
    return "" if value is UNNAMED else name_of(name, value)


def path(name: str, value: Any) -> str:
    """A path of the file system."""
    if not isinstance(value, (str, os.PathLike)):
        raise kind_error(name, "a path", value)
    if not value:
        raise ValueError(f"{name}: is empty")
    return text(name, os.fspath(value))


def is_frame(value: Any) -> bool:
    """True: a data frame of any library."""
    return hasattr(type(value), "columns")


def listed(name: str, value: Any, wanted: str) -> Iterable[Any]:
    """The items of a list, an array, a column or an iterator.

    TypeError for what has items that are not meant one by one, texts, bytes,
    dictionaries and data frames, and for sets, which have no order.
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
        if hasattr(value, to_list):  # of Python's own values
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
    """A token id; the vocabulary is the server's."""
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
    """Seconds that a call may take; None: any time, as for infinity."""
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


def put(message: Any, field: str, value: Any) -> None:
    """Sets a field of one value, which has its name in the API."""
    kind = message.DESCRIPTOR.fields_by_name[field].cpp_type
    if kind in _INTEGERS:
        checked: Any = integer(field, value, *_INTEGERS[kind])
    elif kind in (FieldDescriptor.CPPTYPE_DOUBLE,
                  FieldDescriptor.CPPTYPE_FLOAT):
        checked = number(field, value)
    elif kind == FieldDescriptor.CPPTYPE_BOOL:
        checked = flag(field, value)
    else:
        checked = text(field, value)
    setattr(message, field, checked)


def filled(message: Any, **fields: Any) -> Any:
    """The message, with these fields put."""
    for field, value in fields.items():
        put(message, field, value)
    return message
