import asyncio
import csv
import io
import math

import numpy
import pandas
import polars
import pyarrow
import pytest

from txl_client import (AsyncClient, InvalidArgumentError, NotFoundError,
                        ResourceExhaustedError, tables)
from txl_client.scores import AlternativeScore, Score, ScoredToken

TEXTS = ["To be, or not to be", "Two bee, oar knot", "O Romeo, Romeo!"]

N_BEST = [
    {"utterance": 7, "hypothesis": "to be or not to be", "heard": -12.0},
    {"utterance": 8, "hypothesis": "my kingdom for a horse", "heard": -9.0},
    {"utterance": 7, "hypothesis": "two bee or knot two bee", "heard": -10.0},
    {"utterance": 8, "hypothesis": "mike king done four hoarse",
     "heard": -8.5},
    {"utterance": 7, "hypothesis": "to be or not to bee", "heard": -11.0},
]
COLUMNS = {"group": "utterance", "text": "hypothesis", "acoustic": "heard"}


def test_scores_are_those_of_each_text_alone(client):
    together = client.score(TEXTS, logprobs=1)
    assert together == [client.score([text], logprobs=1)[0]
                        for text in TEXTS]
    assert together == client.score(TEXTS, logprobs=1)  # partly cached
    for text, score in zip(TEXTS, together):
        logprobs = [token.logprob for token in score.tokens]
        assert logprobs[0] is None
        assert score.sum_logprob == pytest.approx(sum(logprobs[1:]))
        assert "".join(token.text for token in score.tokens) == text
        assert score.perplexity == pytest.approx(
            math.exp(-score.sum_logprob / (len(text) - 1)))


def test_more_texts_than_may_be_in_flight_keep_their_order(client):
    texts = ["ab" * (1 + n % 7) for n in range(100)]
    counts = [score.token_count for score in client.score(texts)]
    assert counts == [len(text) for text in texts]


def test_a_frame_gets_the_scores_beside_its_rows(client):
    frame = pandas.DataFrame({"line": [TEXTS[0], None, "", TEXTS[1]]},
                             index=[9, 8, 7, 6])
    scored = client.score_frame(frame, "line")
    assert list(frame.columns) == ["line"]
    assert list(scored.index) == [9, 8, 7, 6]
    alone = client.score([TEXTS[0], TEXTS[1]])
    assert scored.sum_logprob[9] == alone[0].sum_logprob
    assert scored.sum_logprob[6] == alone[1].sum_logprob
    assert scored.perplexity[6] == alone[1].perplexity
    assert scored.sum_logprob.isna().tolist() == [False, True, True, False]
    assert scored.token_count.tolist() == [len(TEXTS[0]), 0, 0, len(TEXTS[1])]


CSV = "line,utterance,heard\nTo be,1,-2.5\nOr not,1,-1e1\n"


@pytest.mark.parametrize("rows", [
    list, iter, lambda rows: (row for row in rows),
    lambda rows: map(dict, rows), lambda rows: dict(enumerate(rows)).values(),
    lambda rows: csv.DictReader(io.StringIO(CSV)),
    lambda rows: polars.DataFrame(rows).iter_rows(named=True),
    lambda rows: pyarrow.Table.from_pylist(rows).to_pylist()])
def test_rows_may_come_one_by_one_and_only_once(client, rows):
    given = list(csv.DictReader(io.StringIO(CSV)))
    scored = client.score_frame(rows(given), "line")
    alone = client.score(["To be", "Or not"])
    assert scored == [
        {**row, "sum_logprob": score.sum_logprob,
         "token_count": score.token_count, "perplexity": score.perplexity}
        for row, score in zip(given, alone)]
    # A CSV file has its numbers as text.
    rescored = client.rescore(rows(given), group="utterance", text="line",
                              acoustic="heard")
    assert [row["score"] for row in rescored] == [
        -2.5 + alone[0].sum_logprob, -10.0 + alone[1].sum_logprob]


@pytest.mark.parametrize("table", [
    {"line": ["To be"]}, "line", b"line", None, 5, {"line"},
    pandas.Series(["line"]), ["line"], [("line",)], numpy.array(["line"]),
    list(pandas.DataFrame({"line": ["a"]}).itertuples()),
    polars.DataFrame({"line": ["a"]}), polars.LazyFrame({"line": ["a"]}),
    pyarrow.table({"line": ["a"]})], ids=lambda table: str(type(table)))
def test_what_is_no_table_is_refused(client, table):
    with pytest.raises(TypeError, match="^frame: "):
        client.score_frame(table, "line")
    with pytest.raises(TypeError, match="^rows: "):
        client.rescore(table, group="line", text="line")


def test_a_column_is_one_column(client):
    twice = pandas.DataFrame([["a", "b"]], columns=["line", "line"])
    with pytest.raises(ValueError, match="^line: 2 columns"):
        client.score_frame(twice, "line")
    above = pandas.DataFrame([["a"]], columns=pandas.MultiIndex.from_tuples(
        [("line", "first")]))
    with pytest.raises(ValueError, match="^line: there is no such column"):
        client.score_frame(above, "line")


MISSING = [None, math.nan, numpy.float32("nan"), pandas.NA, pandas.NaT]


@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_a_missing_text_has_a_missing_score(client, missing):
    for table in ([{"text": missing}, {"text": "a"}],
                  pandas.DataFrame({"text": [missing, "a"]})):
        scored = pandas.DataFrame(client.score_frame(table))
        assert scored.sum_logprob.isna().tolist() == [True, False]
        assert scored.token_count.tolist() == [0, 1]


@pytest.mark.parametrize("value, error", [
    (5, TypeError), (b"a", TypeError), ([1, 2], TypeError), (True, TypeError),
    ("\ud800", ValueError)])
def test_what_is_no_text_is_not_a_missing_one(client, value, error):
    for table in ([{"text": "a"}, {"text": value}],
                  pandas.DataFrame({"text": ["a", value]}, dtype=object)):
        with pytest.raises(error, match="^text: row 1: "):
            client.score_frame(table)


# Where each of 101 texts, one of them refused, was given.
MANY = ["To be"] * 57 + ["caf\xe9"] + ["or"] * 43
ROWS = [{"line": text, "list": number % 31} for number, text in
        enumerate(MANY)]


@pytest.mark.parametrize("work, place, field", [
    (lambda c: c.score(MANY), "texts[57]", "text"),
    (lambda c: c.score([[1], [1, 10**6]]), "texts[1][1]", "tokens.ids[1]"),
    (lambda c: c.score_frame(ROWS, "line"), "line: row 57", "text"),
    (lambda c: c.score_frame(pandas.DataFrame(ROWS), "line"), "line: row 57",
     "text"),
    (lambda c: c.rescore(ROWS, group="list", text="line"), "line: row 57",
     "alternatives[1].text"),
    (lambda c: c.rescore(ROWS[:9], group="list", text="line", context="\xe9"),
     "context", "text"),
    (lambda c: c.score_alternatives(["a"], context=[10**6]), "context[0]",
     "tokens.ids[0]")])
def test_the_text_that_the_server_refuses_is_named(client, server, work, place,
                                                   field):
    async def awaited():
        async with AsyncClient(server.address) as twin:
            await work(twin)

    for run in (lambda: work(client), lambda: asyncio.run(awaited())):
        with pytest.raises(InvalidArgumentError) as caught:
            run()
        error = caught.value
        assert (error.reason, error.place) == ("FIELD_INVALID", place)
        assert error.fields == (field,)
        assert error.message.startswith(f"{place}: t")
        assert str(error).startswith(
            f"INVALID_ARGUMENT (FIELD_INVALID): {error.message}; trace ")


@pytest.mark.parametrize("work, place", [
    (lambda c, texts: c.score(texts), "texts[1]"),
    (lambda c, texts: c.score_frame([{"text": text} for text in texts]),
     "text: row 1"),
    (lambda c, texts: c.rescore(
        [{"list": text[:1], "text": text} for text in texts], group="list",
        text="text"), "text: the group of row 1")])
def test_a_text_that_no_message_holds_is_named(client, work, place):
    with pytest.raises(ResourceExhaustedError, match="larger") as caught:
        work(client, ["To be", "a" * 2_000_000, "or"])
    assert caught.value.place == place


def test_what_is_wrong_with_every_text_names_none(client):
    for error, options in ((InvalidArgumentError, {"logprobs": 10**6}),
                           (NotFoundError, {"session_id": "none"})):
        with pytest.raises(error) as caught:
            client.score(["a", "b"], **options)
        assert caught.value.place == ""


def test_rescoring_is_scoring_each_hypothesis_alone(client):
    rescored = client.rescore(N_BEST, weight=0.5, **COLUMNS)
    for row, before in zip(rescored, N_BEST):
        alone, = client.score([before["hypothesis"]])
        assert row["lm_logprob"] == alone.sum_logprob
        assert row["score"] == before["heard"] + 0.5 * alone.sum_logprob
        assert {name: row[name] for name in before} == before
    for utterance in (7, 8):
        group = [row for row in rescored if row["utterance"] == utterance]
        assert [row["best"] for row in group] == [
            row["score"] == max(r["score"] for r in group) for row in group]


def test_a_frame_is_rescored_as_its_rows_are(client):
    rows = client.rescore(N_BEST, **COLUMNS)
    frame = client.rescore(pandas.DataFrame(N_BEST), **COLUMNS)
    assert frame.to_dict("records") == rows


def test_a_context_stands_before_every_hypothesis(client):
    rescored = client.rescore(N_BEST[:1], group="utterance",
                              text="hypothesis", context="HAMLET:\n")
    session = client.session().create()
    session.append("HAMLET:\n")
    behind, = session.score([N_BEST[0]["hypothesis"]])
    session.delete()
    assert rescored[0]["lm_logprob"] == behind.sum_logprob
    assert rescored[0]["score"] == behind.sum_logprob


def test_tables_are_awaited_with_the_same_result(client, server):
    async def run():
        async with AsyncClient(server.address) as twin:
            return (await twin.rescore(N_BEST, **COLUMNS),
                    await twin.score_frame(pandas.DataFrame(
                        {"text": TEXTS})))

    rescored, scored = asyncio.run(run())
    assert rescored == client.rescore(N_BEST, **COLUMNS)
    assert scored.equals(client.score_frame(pandas.DataFrame(
        {"text": TEXTS})))


# The plans alone, with answers made up: a hypothesis' logprob is minus its
# length.


def rescored_by_length(rows, acoustic="heard", weight=1.0, most=2):
    plan = tables.RescorePlan(rows, tables.RescoreColumns(
        "utterance", "hypothesis", acoustic, weight, None), most)
    requests = [call.request for call in plan.calls()]
    answers = [[AlternativeScore(-float(len(a.text)), len(a.text))
                for a in request.alternatives] for request in requests]
    return [len(answer) for answer in answers], plan.fill(answers)


def test_a_long_list_is_parted_and_put_together_again():
    sizes, rows = rescored_by_length(N_BEST)
    assert sizes == [2, 1, 2]
    assert [row["lm_logprob"] for row in rows] == [-18, -22, -23, -26, -19]
    assert [row["score"] for row in rows] == [-30, -31, -33, -34.5, -30]
    # Of equals the first one is best.
    assert [row["best"] for row in rows] == [True, True, False, False, False]


def test_a_weight_decides_between_ear_and_model():
    _, rows = rescored_by_length(N_BEST, weight=0.0)
    assert [row["best"] for row in rows] == [False, False, True, True, False]
    _, rows = rescored_by_length(N_BEST, acoustic=None)
    assert [row["best"] for row in rows] == [True, True, False, False, False]


def test_a_score_that_is_no_number_is_never_best():
    rows = [dict(row) for row in N_BEST]
    rows[0]["heard"] = math.nan
    _, rescored = rescored_by_length(rows)
    assert [row["best"] for row in rescored] == [
        False, True, False, False, True]


@pytest.mark.parametrize("missing", ["", *MISSING], ids=repr)
def test_a_hypothesis_without_text_is_named(missing):
    with pytest.raises(ValueError, match="^hypothesis: row 1 "):
        rescored_by_length([N_BEST[0], {**N_BEST[1], "hypothesis": missing}])


@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_a_hypothesis_of_no_group_is_named(missing):
    rows = [N_BEST[0], {**N_BEST[1], "utterance": missing}]
    for table in (rows, pandas.DataFrame(rows, dtype=object)):
        with pytest.raises(ValueError, match="^utterance: row 1 "):
            rescored_by_length(table)


def test_a_group_is_named_by_what_can_be_a_key():
    with pytest.raises(TypeError, match="^utterance: row 0: "):
        rescored_by_length([{**N_BEST[0], "utterance": [7]}])


@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_a_missing_number_is_never_best(missing):
    rows = [{**N_BEST[0], "heard": missing}, *N_BEST[1:]]
    _, rescored = rescored_by_length(rows)
    assert math.isnan(rescored[0]["score"])
    assert [row["best"] for row in rescored] == [
        False, True, False, False, True]


def test_a_group_without_a_score_has_no_best():
    rows = [{**row, "heard": None} if row["utterance"] == 7 else row
            for row in N_BEST]
    _, rescored = rescored_by_length(rows)
    assert [row["best"] for row in rescored] == [
        False, True, False, False, False]


@pytest.mark.parametrize("value, error", [
    ("", ValueError), ("loud", ValueError), (10**400, ValueError),
    (True, TypeError), ([1.0], TypeError), (1j, TypeError)])
def test_what_is_no_number_is_named(value, error):
    with pytest.raises(error, match="^heard: row 0: "):
        rescored_by_length([{**N_BEST[0], "heard": value}])


@pytest.mark.parametrize("weight, error", [
    (math.nan, ValueError), (math.inf, ValueError), ("1", TypeError),
    (None, TypeError), (True, TypeError)])
def test_a_weight_is_a_finite_number(weight, error):
    with pytest.raises(error, match="^weight: "):
        rescored_by_length(N_BEST, weight=weight)


@pytest.mark.parametrize("rows", [
    [{"utterance": 1, "hypothesis": "a"}],
    pandas.DataFrame({"utterance": [1], "hypothesis": ["a"]})])
def test_a_column_that_is_missing_is_named(rows):
    with pytest.raises(ValueError, match="heard"):
        rescored_by_length(rows)


def test_a_perplexity_of_nothing_is_no_number():
    assert math.isnan(Score((ScoredToken(1, None, "a"),), 0.0).perplexity)
