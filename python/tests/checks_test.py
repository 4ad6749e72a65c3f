"""What each kind of argument may be; mistakes_test has where they are given."""

import array
import datetime
import decimal
import math
from fractions import Fraction

import numpy
import pandas
import polars
import pyarrow
import pytest

from txl_client import checks
from txl_client._proto import sampling_pb2

HALF = "a\ud800"


def fails(error, check, *arguments):
    """The message of the error, which names the argument first."""
    with pytest.raises(error) as caught:
        check("it", *arguments)
    assert type(caught.value) is error
    assert str(caught.value).startswith("it")
    return str(caught.value)


@pytest.mark.parametrize("value", [
    5, numpy.int8(5), numpy.uint64(5), numpy.array(5)])
def test_an_integer_is_of_any_type_of_integers(value):
    read = checks.integer("it", value, 0, 9)
    assert (read, type(read)) == (5, int)


@pytest.mark.parametrize("value", [
    5.0, 5.5, numpy.float64(5), numpy.array(5.0), True, numpy.bool_(True), "5",
    b"5", None, math.nan, pandas.NA, [5], numpy.array([5]), 5j,
    decimal.Decimal(5), Fraction(5), numpy.timedelta64(5, "ns")])
def test_whole_numbers_of_other_types_are_not_integers(value):
    fails(TypeError, checks.integer, value, 0, 9)


def test_an_integer_out_of_its_range_is_shown_with_it():
    assert fails(ValueError, checks.integer, -1, 0, 9) == (
        "it: must be in [0, 9], is -1")
    assert fails(ValueError, checks.integer, 0, 1) == (
        "it: must be at least 1, is 0")
    # More digits than Python writes.
    assert fails(ValueError, checks.integer, 10**5000, 0, 9) == (
        "it: must be in [0, 9]")


@pytest.mark.parametrize("value", [
    0.5, numpy.float32(0.5), numpy.array(0.5), decimal.Decimal("0.5"),
    Fraction(1, 2)])
def test_a_number_is_of_any_type_of_real_numbers(value):
    read = checks.number("it", value)
    assert (read, type(read)) == (0.5, float)


@pytest.mark.parametrize("value", [
    True, numpy.bool_(False), "0.5", None, pandas.NA, [0.5],
    numpy.array([0.5]), 1j, numpy.timedelta64(5, "ns")])
def test_what_only_looks_like_a_number_is_none(value):
    fails(TypeError, checks.number, value)


def test_a_number_that_no_float_holds_is_named():
    fails(ValueError, checks.number, 10**400)


def test_a_flag_is_true_or_false_and_not_what_python_takes_for_it():
    assert checks.flag("it", numpy.bool_(True)) is True
    assert checks.flag("it", False) is False
    for value in (0, 1, "no", "", None, numpy.int64(1), []):
        fails(TypeError, checks.flag, value)


def test_a_text_is_one_that_utf_8_holds():
    for value in ("", "snow \u2603", "\U0001f600", "\0", numpy.str_("a")):
        assert checks.text("it", value) == value
    for value in (b"a", bytearray(b"a"), memoryview(b"a")):
        assert "decode" in fails(TypeError, checks.text, value)
    for value in (None, 5, ["a"], math.nan):
        fails(TypeError, checks.text, value)
    assert "character 1" in fails(ValueError, checks.text, HALF)


def test_a_name_has_1_to_64_characters_that_a_header_holds():
    assert checks.name_of("it", "aZ_-9" + "x" * 59)
    for value in ("", "x" * 65, "a b", "a\n", "caf\xe9", HALF):
        fails(ValueError, checks.name_of, value)
    for value in (None, 5, b"a"):
        fails(TypeError, checks.name_of, value)
    assert checks.optional_name("it", checks.UNNAMED) == ""
    fails(ValueError, checks.optional_name, "")
    fails(TypeError, checks.optional_name, None)


IDS = [[1, 2], (1, 2), range(1, 3), iter([1, 2]), map(int, "12"),
       {"a": 1, "b": 2}.values(), {1: "a", 2: "b"}.keys(),
       numpy.array([1, 2]), [numpy.uint8(1), 2], array.array("I", [1, 2]),
       pandas.Series([1, 2]), pandas.Index([1, 2]),
       pandas.Series([1, 2], dtype="Int64"), polars.Series([1, 2]),
       pyarrow.array([1, 2]), pyarrow.chunked_array([[1], [2]])]


@pytest.mark.parametrize("value", IDS, ids=lambda value: str(type(value)))
def test_ids_come_from_whatever_has_them_in_order(value):
    read = checks.token_ids("it", value)
    assert (read, {type(each) for each in read}) == ([1, 2], {int})


@pytest.mark.parametrize("value", [
    "12", b"12", bytearray(b"12"), memoryview(b"12"), 5, None, math.nan,
    {1, 2}, frozenset([1]), {1: 2}, numpy.array(5), object(),
    pandas.DataFrame({"ids": [1]}), polars.DataFrame({"ids": [1]}),
    pyarrow.table({"ids": [1]})], ids=lambda value: str(type(value)))
def test_what_is_no_list_gives_no_ids(value):
    fails(TypeError, checks.token_ids, value)


@pytest.mark.parametrize("value", [
    [0, 23.7], [0, 23.0], [0, True], [0, "1"], [0, None], [0, [1]],
    [0, pandas.NA], numpy.array([0.0, 1.0]), numpy.array([[1, 2]]),
    numpy.array([True, False]), pandas.Series([0, None]),
    pandas.Series([0, None], dtype="Int64"), polars.Series([0, None])])
def test_an_id_of_another_type_is_named_by_its_place(value):
    assert fails(TypeError, checks.token_ids, value).startswith("it[")


def test_an_id_is_one_that_the_wire_holds():
    assert checks.token_ids("it", []) == []
    assert checks.token_ids("it", [0, 2**32 - 1]) == [0, 2**32 - 1]
    for value in (-1, 2**32, 2**70):
        assert "it[1]" in fails(ValueError, checks.token_ids, [0, value])


def test_an_array_of_torch_is_as_one_of_numpy():
    class Tensor:
        """As much of torch.Tensor, which takes True and [1] for the index 1.
        """

        dtype = "torch.int64"

        def __init__(self, value, *shape):
            self.value = value
            self.shape = shape

        def item(self):
            return self.value

        def __index__(self):
            return int(self.value)

    assert checks.token_ids("it", [Tensor(7)]) == [7]
    fails(TypeError, checks.token_ids, [Tensor(True)])
    fails(TypeError, checks.token_ids, [Tensor(7.0)])
    fails(TypeError, checks.token_ids, [Tensor(7, 1)])


def test_texts_are_several():
    for value in (["a", "b"], iter("ab"), numpy.array(["a", "b"]),
                  pandas.Series(["a", "b"]),
                  pyarrow.chunked_array([["a", "b"]])):
        assert checks.texts("it", value) == ["a", "b"]
    for value in ("ab", b"ab", None, 5, {"a": "b"}, {"a", "b"}):
        fails(TypeError, checks.texts, value)
    for value in (["a", None], ["a", b"b"], ["a", 5]):
        assert "it[1]" in fails(TypeError, checks.texts, value)
    assert "it[1]" in fails(ValueError, checks.texts, ["a", HALF])


@pytest.mark.parametrize("value", [
    None, math.nan, numpy.nan, numpy.float32("nan"), pandas.NA, pandas.NaT,
    numpy.datetime64("NaT"), decimal.Decimal("NaN")])
def test_values_may_be_missing_in_many_ways(value):
    assert checks.is_missing(value)


@pytest.mark.parametrize("value", [
    "", "nan", 0, 0.0, False, math.inf, [], numpy.array([1, 2]),
    pandas.Timestamp(0)])
def test_what_is_empty_or_zero_is_not_missing(value):
    assert not checks.is_missing(value)


HOUR = datetime.timedelta(hours=1)


@pytest.mark.parametrize("value, limit", [
    (None, None), (math.inf, None), (1e30, None), (10**12, None),
    (datetime.timedelta.max, None), (3600, 3600.0), (numpy.int64(3600), 3600.0),
    (HOUR, 3600.0), (pandas.Timedelta(HOUR), 3600.0), (0, 0.0), (-1, -1.0)])
def test_a_timeout_that_no_call_outlives_is_no_limit(value, limit):
    assert checks.timeout("it", value) == limit


@pytest.mark.parametrize("value", [
    3600, 3600.0, numpy.float32(3600), HOUR, pandas.Timedelta(HOUR)])
def test_a_duration_is_seconds_or_a_timedelta(value):
    assert checks.duration("it", value) == HOUR


@pytest.mark.parametrize("value", [
    math.inf, -math.inf, 1e30, 2**70, 10**400, 1e12, datetime.timedelta.max,
    datetime.timedelta.min])
def test_a_duration_that_no_message_holds_is_named(value):
    fails(ValueError, checks.duration, value)


@pytest.mark.parametrize("check", [checks.timeout, checks.duration])
def test_a_time_is_a_number(check):
    fails(ValueError, check, math.nan)
    for value in ("60", "1h", True, [1], numpy.timedelta64(60, "s"),
                  numpy.timedelta64(60, "ns")):
        fails(TypeError, check, value)


def test_a_field_takes_what_its_type_in_the_api_holds():
    message = sampling_pb2.SamplingParams()
    for field, value in (("top_k", 2**63 - 1), ("penalty_window", -2**31),
                         ("seed", 2**64 - 1), ("temperature", 1)):
        checks.put(message, field, value)
        assert getattr(message, field) == value
    for field, value in (("top_k", 2**63), ("penalty_window", 2**31),
                         ("seed", 2**64), ("seed", -1)):
        with pytest.raises(ValueError, match=f"^{field}: must be in "):
            checks.put(message, field, value)
