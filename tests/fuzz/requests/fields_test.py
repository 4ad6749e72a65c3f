"""The table of fields is the server's: its descriptors, bounds and HTTP names.

Usage: fields_test.py [test...]
"""

import random
import re
import unittest

import paths

import api
import cases
import fields
import values
from fields import METHODS, Field

_PROTO = paths.ROOT / "proto/txl/v1"
_HTTP = paths.ROOT / "server/http"
# Kinds whose bounds are numbers that the proto's comment states.
_BOUNDED = ("real", "whole", "bias")


def services():
    """Every "Service/Method" of the protos."""
    names = []
    for file in sorted(_PROTO.glob("*_service.proto")):
        service = re.search(r"^service (\w+)", file.read_text(), re.M)[1]
        names += [f"{service}/{m}" for m in re.findall(
            r"^  rpc (\w+)", file.read_text(), re.M)]
    return names


def leaves(descriptor, prefix=""):
    """Paths of a request's fields: those of its parts for messages."""
    for field in descriptor.fields:
        part = field.message_type
        plain = part is None or field.name in ("ttl", "alternatives",
                                               "logit_bias")
        if plain:
            yield prefix + field.name, descriptor, field.name
        else:
            yield from leaves(part, f"{prefix}{field.name}.")


def comment(message, field):
    """What stands above a field in its proto."""
    for file in _PROTO.glob("*.proto"):
        body = re.search(rf"^message {message} {{(.*?)^}}", file.read_text(),
                         re.M | re.S)
        found = body and re.search(
            rf"((?:^ *//.*\n)+) *(?:[\w.<>]+|map<.*?>|optional \w+|repeated "
            rf"\w+) {field} = \d+;", body[1], re.M)
        if found:
            return " ".join(found[1].replace("//", " ").split())
    raise AssertionError(f"{message}.{field} has no comment")


class Table(unittest.TestCase):
    def test_every_method_has_a_row(self):
        self.assertEqual(sorted([*METHODS, *fields.LEFT_OUT]),
                         sorted([*services(), "chat"]))

    def test_every_field_of_a_request_has_a_row(self):
        for name, method in METHODS.items():
            if method.grpc:
                request = api.message(name.partition("/")[2] + "Request")
                self.assertEqual(
                    sorted(p for p, *_ in leaves(request.DESCRIPTOR)),
                    sorted(method.fields), name)

    def test_bounds_stand_in_the_comments_of_the_proto(self):
        for name, method in METHODS.items():
            if not method.grpc:
                continue
            request = api.message(name.partition("/")[2] + "Request")
            for path, owner, last in leaves(request.DESCRIPTOR):
                field = method.fields[path]
                text = comment(owner.name, last)
                if "ame rules as" in text or field.kind not in _BOUNDED:
                    continue
                for bound in (field.low, field.high):
                    if isinstance(bound, int) and abs(bound) > 1 << 30:
                        continue  # the type's own
                    self.assertIn(str(bound).replace("_", " "),
                                  text.replace("_", " "), f"{name} {path}")

    def test_what_must_be_set_is_told_by_the_proto(self):
        for name, path in (("SessionService/RewindSession", "position"),):
            self.assertTrue(METHODS[name].fields[path].must)
            self.assertIn("must be present", comment(
                name.partition("/")[2] + "Request", path))

    def test_completions_and_chat_have_the_fields_that_the_front_reads(self):
        self.assertEqual(
            self._table("GenerationService/Generate") | self._table("chat")
            | {"role", "content"}, self._read("completion_request"))

    def test_fields_of_completions_are_documented(self):
        documented = (paths.ROOT / "docs/http.md").read_text()
        for name in self._table("GenerationService/Generate"):
            self.assertIn(name, documented)

    @staticmethod
    def _table(name):
        http = METHODS[name].http
        every = {*http.names.values(), *http.more}
        return {part for n in every for part in n.split(".")}

    @staticmethod
    def _read(name):
        """Names that the source asks a body for."""
        source = (_HTTP / f"{name}.cc").read_text()
        asked = re.findall(r"(?:Find|String|Strings|Integer|Number|Bool|Ids|"
                           r"ReadNamed)\((?:fields, )?\"(\w+)\"", source)
        listed = re.findall(r"(?:\{|pair\()\"(\w+)\", &v1", source)
        looped = re.findall(r"for \(const char\* name :\s*\{(.*?)\}\)", source)
        return {*asked, *listed, *re.findall(r"\w+", " ".join(looped))}


class Values(unittest.TestCase):
    LIMITS = {"vocabulary_size": 65, "max_stop_text_bytes": 8}

    def value(self, field, how):
        return values.value(field, how, self.LIMITS, random.Random(1))

    def test_ends_of_a_range_are_inside_and_what_follows_is_outside(self):
        field = Field("whole", 2, 5)
        self.assertEqual([self.value(field, h) for h in
                          ("below", "low", "high", "above")], [1, 2, 5, 6])

    def test_an_open_end_is_outside(self):
        field = Field("real", 0, 1, open_low=True)
        self.assertEqual(self.value(field, "below"), 0)
        self.assertGreater(self.value(field, "low"), 0)

    def test_an_id_above_is_no_token_or_one_too_many(self):
        ids = self.value(Field("ids", 1, 3), "above")
        self.assertTrue(ids == [65] or len(ids) == 4)

    def test_a_required_field_is_missed_however_it_is_left_out(self):
        for how in ("absent", "null", "empty"):
            self.assertTrue(values.refused(Field("name", must=True), how,
                                           "http"))
            self.assertFalse(values.refused(Field("name"), how, "http"))


class Cases(unittest.TestCase):
    LIMITS = {"vocabulary_size": 65, "max_stop_text_bytes": 8,
              "max_prompt_bytes": 8, "max_prompt_tokens": 8, "max_tokens": 8,
              "max_logprobs": 2, "max_stop_texts": 2, "max_stop_tokens": 2,
              "max_alternatives": 2, "max_allowed_tokens": 2}

    def test_a_number_of_a_seed_is_always_the_same_request(self):
        first = cases.Maker(3, self.LIMITS)
        for _ in range(50):
            first.make(7)
        self.assertEqual(repr(first.make(9)),
                         repr(cases.Maker(3, self.LIMITS).make(9)))

    def test_every_method_and_every_change_is_drawn(self):
        maker = cases.Maker(1, self.LIMITS)
        made = [maker.make(n) for n in range(3000)]
        self.assertEqual({c.name for c in made}, set(METHODS))
        self.assertEqual({c.state for c in made}, set(cases.STATES))
        self.assertEqual({h for c in made for h in c.changes.values()},
                         set(values.HOWS))

    def test_a_position_that_is_left_out_has_to_be_refused(self):
        case = cases.Case(1, "SessionService/RewindSession", "filled",
                          {"session_id": fields.ID}, {"position": "absent"},
                          ["grpc", "http"])
        self.assertEqual(case.refusals("grpc"), ["position"])
        self.assertEqual(case.refusals("http"), ["position"])


if __name__ == "__main__":
    unittest.main()
