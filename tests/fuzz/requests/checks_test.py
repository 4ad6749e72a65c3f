"""Every check can fail: each sees what it is there for.

Usage: checks_test.py [test...]
"""

import unittest

import checks
import fields
from cases import Case
from doors import Answer

OK = Answer()
BOTH = ["grpc", "http"]


def case(changes=(), name="SessionService/RewindSession", state="filled",
         **given):
    return Case(1, name, state, {"session_id": fields.ID, **given},
                dict(changes), BOTH)


class Checks(unittest.TestCase):
    def test_an_answer_that_never_comes_or_is_late_or_broken(self):
        self.assertFalse(checks.answered(case(), Answer(seconds=1), 2))
        for answer in (Answer("NONE"), Answer(seconds=3), Answer(broken="x")):
            self.assertTrue(checks.answered(case(), answer, 2))

    def test_an_error_that_is_the_servers(self):
        for code in ("INTERNAL", "UNKNOWN", "UNAVAILABLE", "DEADLINE_EXCEEDED"):
            self.assertTrue(checks.blames_client(
                case(), "grpc", Answer(code, "REASON")))

    def test_an_error_that_names_no_field_or_another_one(self):
        wrong = case({"position": "below"}, position=-1)
        for field, held in (("position", True), ("", False), ("ttl", False)):
            answer = Answer("INVALID_ARGUMENT", "FIELD_INVALID", field)
            self.assertEqual(
                not checks.blames_client(wrong, "grpc", answer), held, field)

    def test_a_reason_that_nothing_in_the_request_has(self):
        answer = Answer("NOT_FOUND", "SESSION_UNKNOWN")
        self.assertTrue(checks.blames_client(case(), "grpc", answer))
        self.assertFalse(checks.blames_client(case(state="ended"), "grpc",
                                              answer))

    def test_a_position_that_was_left_out_and_is_taken(self):
        for how in ("absent", "null", "misspelt"):
            self.assertTrue(checks.refuses(case({"position": how}), "http",
                                           OK))
        self.assertFalse(checks.refuses(case(position=0), "http", OK))

    def test_a_good_request_that_is_refused(self):
        self.assertTrue(checks.refuses(
            case(position=0), "grpc", Answer("INVALID_ARGUMENT")))

    def test_a_session_that_an_error_has_changed(self):
        error = Answer("INVALID_ARGUMENT")
        self.assertFalse(checks.keeps_session(case(), error, [1, 2], [1, 2]))
        for after in ([], [1], [1, 2, 3], None):
            self.assertTrue(checks.keeps_session(case(), error, [1, 2], after))

    def test_a_session_that_does_not_hold_what_the_answer_says(self):
        back = case(position=1)
        self.assertFalse(checks.keeps_session(back, OK, [1, 2], [1]))
        self.assertTrue(checks.keeps_session(back, OK, [1, 2], []))
        score = case(name="GenerationService/Score")
        self.assertTrue(checks.keeps_session(score, OK, [1], [1, 2]))
        append = case(name="SessionService/AppendTokens")
        self.assertFalse(checks.keeps_session(append, OK, [1], [1, 2]))
        self.assertTrue(checks.keeps_session(append, OK, [1], [2, 2]))

    def test_doors_that_differ(self):
        tokens = {"grpc": Answer(essence=[1]), "http": Answer(essence=[1])}
        self.assertFalse(checks.alike(case(), tokens))
        for other in (Answer(essence=[2]), Answer("INVALID_ARGUMENT")):
            self.assertTrue(checks.alike(case(), {**tokens, "http": other}))
        for field, held in (("ttl", False), ("position", True)):
            refused = {
                "grpc": Answer("INVALID_ARGUMENT", "FIELD_INVALID", "ttl"),
                "http": Answer("INVALID_ARGUMENT", "OVER_LIMIT", field)}
            self.assertEqual(not checks.alike(case(), refused), held, field)
        again = case({"request_id": "low"}, **{
            "echo": True, "output.logprobs": 0, "request_id": "a"})
        refused = Answer("INVALID_ARGUMENT", "FIELD_INVALID", "echo")
        self.assertFalse(checks.alike(again, {**tokens, "http": refused}))
        self.assertTrue(checks.alike(again, {**tokens, "grpc": refused}))
        drawn = case({"sampling.seed": "absent",
                      "sampling.temperature": "high"})
        self.assertFalse(checks.alike(
            drawn, {**tokens, "http": Answer(essence=[2])}))


if __name__ == "__main__":
    unittest.main()
