"""What a field may be given: the grammar of values.

A change of a request is (path, how). `how`:

  absent     the field is left out
  null       null, over HTTP
  other      a value of another type
  empty      "", [], {}, 0 seconds
  low, high  at an end of its range
  below, above  past it
  huge       far past everything
  doubled    the member twice; over gRPC the field twice, a list's values twice
  misspelt   its name lacks a letter
  unknown    beside it stands a field that nobody knows

A value that does not fit into a door's types is not sent through that door.
"""

import math

HOWS = ("absent", "null", "other", "empty", "low", "below", "high", "above",
        "huge", "doubled", "misspelt", "unknown")
# Those that change the value; the others change how it stands there.
OF_VALUE = ("empty", "low", "below", "high", "above", "huge")
NOTHING = object()  # the kind has no such value

LONGEST = "n" * 64  # stands for a name of this length, another in each case
_HUGE_TEXT = "c" * 100_000
_HUGE_IDS = [1] * 20_000
_HUGE_BIAS = {i: 1 for i in range(2000)}
_WORDS = {  # kind: {how: values}
    "name": {"empty": [""], "low": ["a"], "below": ["a b", "a/b", "\u00e4"],
             "high": [LONGEST], "above": ["n" * 65], "huge": ["n" * 9000]},
    "flag": {"low": [False], "high": [True]},
    "enum": {"low": [0], "high": [1, 2], "below": [-1], "above": [3],
             "huge": [2**31 - 1]},
    "page": {"empty": [""], "below": ["!"], "above": ["p99999999999999999999"],
             "huge": ["p" * 9000]},
    "level": {"empty": [""], "low": ["error"], "high": ["WARNING"],
              "above": ["loud"], "huge": ["w" * 9000]},
    "file": {"empty": [b""], "below": [b"\0"], "above": [b"\xff" * 64],
             "huge": [b"txl" * 100_000]},
    # The model is one of text: it takes none.
    "midi": {"empty": [b""], "below": [b"ROMEO:", b"MThd\0\0\0\6"],
             "above": [b"MThd\0\0\0\6\0\0\0\1\1\xe0MTrk\0\0\0\4\0\xff\x2f\0"],
             "huge": [b"MThd" * 25_000]},
    "model": {"empty": [""], "above": ["another"], "huge": ["m" * 9000]},
    "any": {"empty": [""], "high": ["somebody"], "huge": ["u" * 9000]},
    "unserved": {"above": ["something"]},
    "alternatives": {"empty": [[]], "low": [["a"], [[1]]],
                     "below": [[""], [[]]], "high": [["ab", [1, 2], "abc"]],
                     "above": [[[1 << 20]]], "huge": [[[1]] * 2000]},
    "prompts": {"empty": ["", [], [""], [[]]], "low": [["a"]],
                "below": [[{}], [["a"]], [1, "a"], [[-1]]],
                "high": [["ab", "cd", [1, 2]]], "above": [[[1 << 20]]],
                "huge": [["a"] * 200, _HUGE_TEXT]},
    "messages": {
        "empty": [[]], "low": [[{"role": "user", "content": ""}]],
        "below": [[{"role": "user"}], [{"content": "a"}], ["a"],
                  [{"role": "pope", "content": "a"}],
                  [{"role": "user", "content": [{"type": "text"}]}]],
        "high": [[{"role": "user", "content": [{"type": "text",
                                                "text": "ab"}]},
                  {"role": "assistant", "content": "cd"}]],
        "huge": [[{"role": "user", "content": _HUGE_TEXT}]]},
}
_OTHER = {"name": [7, [], {}], "flag": [1, "yes"], "whole": ["a", 1.5, [], {}],
          "seed": ["a", 1.5, []], "real": ["a", [], True],
          "text": [7, {}, True, [["a"]]], "ids": [7, {}, ["a"], [1.5], [[1]]],
          "texts": [7, {}, [1]], "bias": [[], 7, {"a": 1}, {"1": "a"}],
          "span": ["soon", [], True], "enum": [1, [], "neither"],
          "page": [7, []], "alternatives": [7, {}, "a", [7], [{}]],
          "model": [7, []], "unserved": [7], "prompts": [7, {}, True],
          "messages": [7, {}, "a"], "midi": [7, {}, "%%", "TVRoZA="]}


def bounds(field, limits):
    """Numbers for the ends of its range."""
    return (field.low, limits[field.high]
            if isinstance(field.high, str) else field.high)


def value(field, how, limits, rng):
    """A value of the field's kind, or NOTHING."""
    if how == "other":
        return rng.choice(_OTHER.get(field.kind, [NOTHING]))
    if field.kind in _WORDS:
        return rng.choice(_WORDS[field.kind].get(how, [NOTHING]))
    low, high = bounds(field, limits)
    if field.kind in ("whole", "seed"):
        huge = [2**63 - 1, -2**63, 2**64, 2**80] if high < 2**31 else [2**80]
        choices = {"low": [low], "high": [high], "below": [low - 1],
                   "above": [high + 1], "huge": huge}
    elif field.kind == "real":
        choices = {"low": [low + 1e-3 if field.open_low else low],
                   "below": [low if field.open_low else low - 0.5],
                   "high": [high], "above": [high + 0.5],
                   "huge": [1e308, -1e308, math.inf, -math.inf, math.nan]}
    elif field.kind == "span":
        choices = {"empty": [0], "low": [low], "below": [0.5, -1],
                   "high": [high], "above": [high + 1],
                   "huge": [3e11, -3e11, 9e18, 1e300]}
    elif field.kind == "text":
        choices = {"empty": [""], "low": ["a" * max(low, 1)],
                   "below": ["\u20ac", "a\0", "@"], "high": ["b" * high],
                   "above": ["b" * (high + 1)], "huge": [_HUGE_TEXT]}
    else:
        choices = _lists(field.kind, high, limits)
    return rng.choice(choices.get(how, [NOTHING]))


def _lists(kind, high, limits):
    """Of texts and ids, and logit_bias."""
    longest = limits["max_stop_text_bytes"]
    last = limits["vocabulary_size"] - 1
    return {
        "texts": {"empty": [[]], "low": [["a"]], "below": [[""]],
                  "high": [["a" * longest] * high],
                  "above": [["a"] * (high + 1)],
                  "huge": [["a" * (longest + 1)]]},
        "ids": {"empty": [[]], "low": [[0]], "below": [[-1]],
                "high": [[last] * high],
                "above": [[last + 1], [1] * (high + 1)],
                "huge": [[2**31 - 1], [1, 2**32 - 1], [2**40], _HUGE_IDS]},
        "bias": {"empty": [{}], "low": [{0: -high}], "high": [{last: high}],
                 "below": [{0: -high - 1}],
                 "above": [{0: high + 1}, {last + 1: 1}],
                 "huge": [{2**32 - 1: 1}, {1: 1e30}, {1: math.inf},
                          _HUGE_BIAS]}}[kind]


def refused(field, how, door, query=False):
    """Whether a request has to be refused for this change alone. In a query
    everything is a text."""
    if how in ("absent", "null"):
        return field.must
    if how == "empty":
        return field.must or field.kind == "midi" or \
            field.kind in ("span", "text") and field.low != 0
    if how == "other":
        if door == "grpc" or query:
            return field.must and field.kind != "name"
        return field.kind != "any"
    if how in ("below", "above", "huge"):
        return field.kind not in ("any",)
    return how in ("doubled", "misspelt") and door == "http"
