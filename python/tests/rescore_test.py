"""python -m txl_client.rescore, on the real server."""

import itertools
import json
import re
import shutil

import pytest
from n_best_test import files, put, put_ranks
from scripted_server import ScriptedServer
from server_process import model, program

from txl_client import n_best
from txl_client.local_server import LocalServer
from txl_client.rescore import Around, main, rescored

TEXTS = ["To be, or not to be", "Two bee, oar knot two bee", "To be or not"]


@pytest.fixture
def run(server, tmp_path, capsys):
    """run(FORMAT, IN, FLAGS): the exit status, and what it said."""
    def run(form, source, *flags, address=server.address):
        status = main(["--server", address, "--format", form, str(source),
                       str(tmp_path / "out"), "--lm-weight", "0.5", *flags])
        return status, capsys.readouterr().err

    return run


@pytest.fixture
def logprobs(client):
    """Of TEXTS as lines, each scored by itself, token by token."""
    def logprob(text):
        session = client.session().create(ttl=60)
        session.append("\n")
        score = session.score([text + "\n"])[0].sum_logprob
        session.delete()
        return score

    return [logprob(text) for text in TEXTS]


def kaldi(folder):
    put(folder / "words_text", "".join(
        f"u-{n} {text}\n" for n, text in enumerate(TEXTS, 1)) + "v-1\n")
    put(folder / "acwt", "u-1 12\nu-2 10\nu-3 11\nv-1 1\n")
    put(folder / "lmwt.nolm", "u-1 1\nu-2 2\nu-3 3\nv-1 4\n")
    return folder


def column(path):
    return {line.split()[0]: float(line.split()[1])
            for line in path.read_text().splitlines()}


def test_kaldi_scores_are_weighted_sums(run, tmp_path, logprobs):
    status, said = run("kaldi", kaldi(tmp_path / "in"), "--length-bonus", "2")
    assert status == 0, said
    out = tmp_path / "out"
    costs, scores = column(out / "lmwt.nn"), column(out / "score")
    words = [6, 6, 4]
    for n, logprob in enumerate(logprobs):
        assert costs[f"u-{n + 1}"] == -logprob
        assert scores[f"u-{n + 1}"] == pytest.approx(
            -[12, 10, 11][n] + 0.5 * (logprob - [1, 2, 3][n]) + 2 * words[n])
    best = max(range(3), key=lambda n: scores[f"u-{n + 1}"])
    assert (out / "text").read_text() == f"u {TEXTS[best]}\nv \n"
    assert said.startswith("2 utterances: 2 scored, 0 scored before; ")


def test_espnet_folders_are_in_the_order_of_sums(run, tmp_path, logprobs):
    put_ranks(tmp_path / "in", {rank: {
        "text": f"u {text}\n", "score": f"u tensor({-rank}.)\n",
        "token": f"u {' '.join(text)}\n"}
        for rank, text in enumerate(TEXTS, 1)})
    status, said = run("espnet", tmp_path / "in", "--length-bonus", "0.25")
    assert status == 0, said
    sums = {text: -rank + 0.5 * logprob + 0.25 * len(" ".join(text).split())
            for rank, (text, logprob) in enumerate(zip(TEXTS, logprobs), 1)}
    lists = n_best.read_espnet(tmp_path / "out")
    assert [(each.text, each.score) for each in lists[0].hypotheses] == [
        (text, pytest.approx(total)) for text, total in
        sorted(sums.items(), key=lambda item: -item[1])]


def test_nemo_lines_have_sums(run, tmp_path, logprobs):
    put(tmp_path / "in.tsv", "".join(
        f"{text}\t{-n}\n" for n, text in enumerate(TEXTS)))
    status, said = run("nemo", tmp_path / "in.tsv", "--beam-size", "3",
                       "--length-bonus", "-0.5")
    assert status == 0, said
    lines = (tmp_path / "out" / "beams.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == TEXTS
    assert [float(line.split("\t")[1]) for line in lines] == [
        pytest.approx(-n + 0.5 * logprob - 0.5 * len(TEXTS[n]))
        for n, logprob in enumerate(logprobs)]


def test_context_and_end_are_those_of_the_flags(run, tmp_path, client):
    put(tmp_path / "in.tsv", "".join(f"{text}\t0\n" for text in TEXTS))
    assert run("nemo", tmp_path / "in.tsv", "--beam-size", "3", "--context",
               "HAMLET:\n", "--end", "")[0] == 0
    wanted = client.score_alternatives(TEXTS, context="HAMLET:\n")
    lines = (tmp_path / "out" / "beams.tsv").read_text().splitlines()
    assert [float(line.split("\t")[1]) for line in lines] == [
        0.5 * each.sum_logprob for each in wanted]


def test_other_weights_need_no_further_call(run, tmp_path):
    source = kaldi(tmp_path / "in")
    assert run("kaldi", source)[0] == 0
    before = column(tmp_path / "out" / "score")
    status, said = run("kaldi", source, "--lm-weight", "1.5")
    assert status == 0
    assert said.startswith("2 utterances: 0 scored, 2 scored before; ")
    after, costs = (column(tmp_path / "out" / name)
                    for name in ("score", "lmwt.nn"))
    for key, graph in (("u-1", 1), ("u-3", 3), ("v-1", 4)):
        assert after[key] - before[key] == pytest.approx(
            -costs[key] - graph)


def test_a_second_run_computes_what_is_missing(run, tmp_path):
    source = kaldi(tmp_path / "in")
    assert run("kaldi", source)[0] == 0
    whole = files(tmp_path / "out")
    kept = tmp_path / "out" / "logprobs.jsonl"
    kept.write_text(whole["logprobs.jsonl"][:-15])
    status, said = run("kaldi", source)
    assert "1 scored, 1 scored before" in said
    assert files(tmp_path / "out") == whole


@pytest.mark.parametrize("flags", [["--context", "A"], ["--end", ""]])
def test_what_was_scored_otherwise_is_scored_again(run, tmp_path, flags):
    source = kaldi(tmp_path / "in")
    assert run("kaldi", source)[0] == 0
    costs = column(tmp_path / "out" / "lmwt.nn")
    assert "2 scored, 0 scored before" in run("kaldi", source, *flags)[1]
    assert column(tmp_path / "out" / "lmwt.nn") != costs
    put(source / "words_text", (source / "words_text").read_text().replace(
        "bee", "be"))
    assert "1 scored, 1 scored before" in run("kaldi", source, *flags)[1]


def test_lists_longer_than_a_call_are_cut(run, tmp_path, client):
    count = client.limits().max_alternatives + 3
    texts = ["".join(letters) for letters in itertools.islice(
        itertools.product("abcdefghijklm", repeat=3), count)]
    assert len(texts) == count
    put(tmp_path / "in.tsv", "".join(f"{text}\t0\n" for text in texts))
    assert run("nemo", tmp_path / "in.tsv", "--beam-size", str(count))[0] == 0
    lines = (tmp_path / "out" / "beams.tsv").read_text().splitlines()
    for index in (0, count - 4, count - 3, count - 1):
        wanted = client.score_alternatives([texts[index] + "\n"],
                                           context="\n")
        assert float(lines[index].split("\t")[1]) == (
            0.5 * wanted[0].sum_logprob)


def test_an_error_names_the_utterance_and_keeps_those_before(run, tmp_path,
                                                            client):
    long = "a" * (client.limits().max_prompt_bytes + 1)
    put(tmp_path / "in.tsv", f"To be\t0\n{long}\t0\nor not\t0\n")
    status, said = run("nemo", tmp_path / "in.tsv", "--beam-size", "1",
                       "--in-flight", "1")
    assert status == 1
    assert "OVER_LIMIT" in said and ": 1: " in said
    assert list(files(tmp_path / "out")) == ["logprobs.jsonl"]
    put(tmp_path / "in.tsv", "To be\t0\nno\t0\nor not\t0\n")
    assert "2 scored, 1 scored before" in run(
        "nemo", tmp_path / "in.tsv", "--beam-size", "1")[1]


def with_unknown(form, folder):
    """Lists of which the second has a 2, which the model's vocabulary lacks.

    Returns IN, and FILE:LINE within it.
    """
    if form == "nemo":
        put(folder.with_suffix(".tsv"), "To be\t0\nor 2 be\t0\n")
        return folder.with_suffix(".tsv"), ":2"
    if form == "kaldi":
        put(folder / "words_text", "a-1 To be\nb-1 bee\nb-2 or 2 be\n")
        return folder, "/words_text:3"
    put_ranks(folder, {1: {"text": "a To be\nb bee\n",
                           "score": "a 0\nb 0\n"},
                       2: {"text": "b or 2 be\n", "score": "b -1\n"}})
    return folder, "/2best_recog/text:1"


@pytest.mark.parametrize("form, flags", [
    ("kaldi", []), ("espnet", []), ("nemo", ["--beam-size", "1"])])
def test_a_hypothesis_that_is_refused_has_its_file_and_line(run, tmp_path,
                                                            form, flags):
    source, place = with_unknown(form, tmp_path / "in")
    status, said = run(form, source, *flags)
    assert status == 1
    assert re.search(f"{source}{place}: [b1]: the vocabulary has no symbol "
                     'for "2"', said), said
    status, said = run(form, source, *flags, "--unknown", "skip")
    assert status == 0
    assert "1 scored, 1 scored before" in said


def test_a_refused_one_behind_the_first_call_is_named_too(run, tmp_path,
                                                         client):
    count = client.limits().max_alternatives
    put(tmp_path / "in.tsv", "".join(
        f"{'a' * (1 + n % 40)}{'b' * (n // 40)}\t0\n"
        for n in range(count + 2)) + "2\t0\n")
    _, said = run("nemo", tmp_path / "in.tsv", "--beam-size", str(count + 3))
    assert f"in.tsv:{count + 3}: 0: the vocabulary" in said


def test_unknown_text_is_left_out_or_the_symbol(run, tmp_path, client):
    source, _ = with_unknown("nemo", tmp_path / "in")
    flags = ["--beam-size", "1", "--unknown"]
    assert run("nemo", source, *flags, "skip")[0] == 0
    lines = (tmp_path / "out" / "beams.tsv").read_text().splitlines()
    wanted = client.score_alternatives(["or  be\n"], context="\n")
    assert lines[1] == f"or 2 be\t{0.5 * wanted[0].sum_logprob!r}"
    status, said = run("nemo", source, *flags, "unk")
    assert status == 1 and "no unknown symbol" in said


def test_what_is_left_out_is_not_what_the_symbol_gave(run, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(model(), folder)
    put(folder / "tokenizer.json", json.dumps(
        {"kind": "symbols", "file": "vocab.json", "unknown": "z"}))
    put(tmp_path / "in.tsv", "a 2 b\t0\n")
    flags = ["--beam-size", "1", "--context", "a", "--end", ""]
    with LocalServer(folder, program=program(),
                     arguments=["--log-level", "error"]) as server:
        def score(*more):
            status, said = run("nemo", tmp_path / "in.tsv", *flags, *more,
                               address=server.address)
            assert status == 0, said
            return said[:24], (tmp_path / "out" / "beams.tsv").read_text()

        scored, before = "1 utterances: 1 scored, ", "1 utterances: 0 scored, "
        said, symbol = score()
        assert said == scored
        assert score("--unknown", "unk") == (before, symbol)
        said, skipped = score("--unknown", "skip")
        assert said == scored and skipped != symbol
        assert score("--unknown", "skip") == (before, skipped)
        assert score() == (scored, symbol)


def test_a_refused_context_is_named(run, tmp_path):
    said = run("kaldi", kaldi(tmp_path / "in"), "--context", "2")[1]
    assert "(FIELD_INVALID): --context: the vocabulary has no" in said


@pytest.mark.parametrize("form, flags, error", [
    ("nemo", [], "--beam-size: nemo needs it"),
    ("nemo", ["--beam-size", "0"], "--beam-size: nemo needs it"),
    ("kaldi", ["--beam-size", "2"], "--beam-size: is only for nemo"),
    ("kaldi", ["--in-flight", "0"], "in_flight: must be"),
    ("kaldi", ["--timeout", "-1"], "timeout: must be more than 0")])
def test_a_wrong_flag_is_named(run, tmp_path, form, flags, error):
    status, said = run(form, kaldi(tmp_path / "in"), *flags)
    assert status == 2
    assert said.startswith(f"txl_client.rescore: {error}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("flag, value, error", [
    ("--lm-weight", "nan", "'nan' is not a finite number"),
    ("--lm-weight", "0.5x", "'0.5x' is not a number"),
    ("--length-bonus", "inf", "'inf' is not a finite number"),
    ("--beam-size", "two", "'two' is not a whole number")])
def test_a_flag_that_is_no_number_is_named(run, tmp_path, capsys, flag, value,
                                           error):
    with pytest.raises(SystemExit) as caught:
        run("kaldi", kaldi(tmp_path / "in"), flag, value)
    assert caught.value.code == 2
    assert f"argument {flag}: {error}\n" in capsys.readouterr().err


def test_wrong_files_are_found_before_any_call(run, tmp_path):
    put(kaldi(tmp_path / "in") / "acwt", "u-1 a\n")
    with ScriptedServer() as scripted:
        status, said = run("kaldi", tmp_path / "in", address=scripted.address)
        assert scripted.calls == []
    assert status == 2
    assert f"{tmp_path}/in/acwt:1: 'a' is not a number" in said
    assert run("kaldi", tmp_path / "none")[0] == 1
    assert not (tmp_path / "out").exists()


def test_the_output_is_not_the_input(run, tmp_path):
    kaldi(tmp_path / "out")
    before = files(tmp_path / "out")
    status, said = run("kaldi", tmp_path / "out")
    assert (status, said) == (
        2, f"txl_client.rescore: {tmp_path}/out: is the input\n")
    assert files(tmp_path / "out") == before


def same_file(link, file):
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(file)
    return file


def in_the_output(form, folder):
    """IN of which a file is one that the run would write into `folder`/out.

    Returns IN, and that file.
    """
    if form == "kaldi":
        source = kaldi(folder / "in")
        return source, same_file(folder / "out" / "score", source / "acwt")
    ranks = {1: {"text": "u To be\n", "score": "u -1\n"}}
    if form == "espnet":
        put_ranks(folder / "output.1", ranks)
        same_file(folder / "out", folder / "output.1")
        return folder, folder / "output.1" / "1best_recog" / "text"
    put(folder / "out" / form, "To be\t-1\n")
    return folder / "out" / form, folder / "out" / form


@pytest.mark.parametrize("form", [
    "kaldi", "espnet", "beams.tsv", "beams.tsv.new", "text", "logprobs.jsonl"])
def test_no_file_of_the_output_is_one_of_the_input(run, tmp_path, form):
    source, file = in_the_output(form, tmp_path)
    before = file.read_text()
    flags = [] if form in ("kaldi", "espnet") else ["--beam-size", "1"]
    with ScriptedServer() as scripted:
        status, said = run("nemo" if flags else form, source, *flags,
                           address=scripted.address)
        assert scripted.calls == []
    assert status == 2
    assert re.match(f"txl_client.rescore: {tmp_path}/out/.*: is the input",
                    said)
    assert file.read_text() == before


@pytest.mark.parametrize("form, flags, file", [
    ("kaldi", [], "text"), ("kaldi", [], "lmwt.nn.new"),
    ("espnet", [], "1best_recog/text"), ("espnet", [], "7best_recog/score"),
    ("nemo", ["--beam-size", "1"], "text")])
def test_files_of_no_earlier_run_are_not_replaced(run, tmp_path, form, flags,
                                                  file):
    source, _ = with_unknown(form, tmp_path / "in")
    put(tmp_path / "out" / file, "of the user")
    with ScriptedServer() as scripted:
        status, said = run(form, source, *flags, address=scripted.address)
        assert scripted.calls == []
    assert status == 2
    assert f" {tmp_path}/out/{file}: is there already, but" in said
    assert files(tmp_path / "out") == {file: "of the user"}
    put(tmp_path / "out" / "logprobs.jsonl", "")  # there was a run
    assert run(form, source, *flags, "--unknown", "skip")[0] == 0
    assert "of the user" not in files(tmp_path / "out").values()


def test_log_probabilities_of_something_else_are_not_overwritten(run,
                                                                 tmp_path):
    put(tmp_path / "out" / "logprobs.jsonl", json.dumps({"a": 1}) + "\n")
    status, said = run("kaldi", kaldi(tmp_path / "in"))
    assert status == 2
    assert "logprobs.jsonl:1: is not a line of txl_client.rescore" in said
    assert len(files(tmp_path / "out")) == 1


def test_a_text_is_scored_once_and_an_empty_one_never():
    hypotheses = tuple(n_best.Hypothesis(text, 0, 0)
                       for text in ("b", "", "a", "b"))
    n_best_list = n_best.NBest("u", hypotheses)
    assert Around("", "").texts(n_best_list) == ["b", "a"]
    assert Around("", "\n").texts(n_best_list) == ["b\n", "\n", "a\n"]


def test_the_sum_has_every_part():
    n_best_list = n_best.NBest("u", (
        n_best.Hypothesis("a", -10.0, 4, weighted=-3.0),
        n_best.Hypothesis("b", -20.0, 0)))
    result = rescored(n_best_list, [-5.0, -7.0], weight=0.5, bonus=0.25)
    assert result.scores == [-10.0 + 0.5 * (-5.0 - 3.0) + 0.25 * 4,
                             -20.0 + 0.5 * -7.0]


def test_a_server_that_is_away_is_said(run, tmp_path):
    status, said = run("kaldi", kaldi(tmp_path / "in"), "--timeout", "0.5",
                       address="127.0.0.1:9")
    assert status == 1
    assert said.startswith("txl_client.rescore: UNAVAILABLE: ")
