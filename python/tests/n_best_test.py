"""Files of n-best lists, as Kaldi, ESPnet and NeMo write and read them."""

import math

import pytest

from txl_client import n_best
from txl_client.n_best import Hypothesis, NBest, Rescored


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8")
            for path in folder.rglob("*") if path.is_file()}


# As nbest-to-linear and int2sym.pl write: an id of an utterance may have
# dashes, a hypothesis may be empty, and awk and paste write tabs.
WORDS = "spk1-utt-1-1 the  cat sat\nspk1-utt-1-2 the cat sad \nspk2-utt-1 \n"
ACOUSTIC = "spk1-utt-1-1 120.5\nspk1-utt-1-2\t119\nspk2-utt-1 7e1 \n"
GRAPH = "spk1-utt-1-1 2.25\nspk1-utt-1-2 -1\nspk2-utt-1 0\n"


@pytest.fixture
def kaldi(tmp_path):
    folder = tmp_path / "archives.1"
    for name, text in (("words_text", WORDS), ("acwt", ACOUSTIC),
                       ("lmwt.nolm", GRAPH)):
        put(folder / name, text)
    return folder


def test_kaldi_has_costs_of_numbered_hypotheses(kaldi):
    first, second = n_best.read_kaldi(kaldi)
    assert (first.name, second.name) == ("spk1-utt-1", "spk2-utt")
    assert [(each.text, each.score, each.weighted, each.length)
            for each in first.hypotheses] == [
        ("the cat sat", -120.5, -2.25, 3), ("the cat sad", -119, 1, 3)]
    assert [(each.text, each.score, each.length)
            for each in second.hypotheses] == [("", -70, 0)]


def test_kaldi_without_costs_is_the_model_alone(kaldi):
    (kaldi / "acwt").unlink()
    (kaldi / "lmwt.nolm").unlink()
    assert all(each.score == each.weighted == 0
               for n_best_list in n_best.read_kaldi(kaldi)
               for each in n_best_list.hypotheses)


def test_kaldi_gets_costs_and_the_best_words(kaldi, tmp_path):
    lists = n_best.read_kaldi(kaldi)
    n_best.write_kaldi(tmp_path / "out", [
        Rescored(lists[0], [-8.5, -9.0], [1.0, 2.0]),
        Rescored(lists[1], [-0.25], [-3.0])])
    assert files(tmp_path / "out") == {
        "lmwt.nn":
            "spk1-utt-1-1 8.5\nspk1-utt-1-2 9.0\nspk2-utt-1 0.25\n",
        "score": "spk1-utt-1-1 1.0\nspk1-utt-1-2 2.0\nspk2-utt-1 -3.0\n",
        "text": "spk1-utt-1 the cat sad\nspk2-utt \n"}


def test_kaldi_costs_have_the_order_of_the_words(tmp_path):
    put(tmp_path / "words_text", "a-1 x\na-1-1 y\na-2 z\n")  # of a and a-1
    lists = n_best.read_kaldi(tmp_path)
    n_best.write_kaldi(tmp_path / "out", [
        Rescored(lists[0], [-1.0, -3.0], [0.0, 0.0]),
        Rescored(lists[1], [-2.0], [0.0])])
    assert files(tmp_path / "out")["lmwt.nn"] == (
        "a-1 1.0\na-1-1 2.0\na-2 3.0\n")


BOM = b"\xef\xbb\xbf"  # as Windows begins text files


def test_a_byte_order_mark_is_no_part_of_the_first_line(kaldi, tmp_path):
    def marked(*paths):
        for path in paths:
            put(path, BOM + path.read_bytes())

    lists = n_best.read_kaldi(kaldi)
    marked(*kaldi.iterdir())
    assert n_best.read_kaldi(kaldi) == lists
    lists = n_best.read_espnet(put_ranks(tmp_path / "in", RANKS))
    marked(*(tmp_path / "in").glob("*/*"))
    assert n_best.read_espnet(tmp_path / "in") == lists
    put(tmp_path / "beams.tsv", BEAMS)
    lists = n_best.read_nemo(tmp_path / "beams.tsv", 2)
    marked(tmp_path / "beams.tsv")
    assert n_best.read_nemo(tmp_path / "beams.tsv", 2) == lists


@pytest.mark.parametrize("file, text, error", [
    ("words_text", WORDS + "utt a b\n", "words_text:4: utt is not UTTERANCE-N"),
    ("words_text", "u-1 a\nu-1 b\n",
     "words_text:2: u-1: is there already, at .*:1"),
    ("words_text", "", "words_text: is empty"),
    ("words_text", b"u-1 a\nu-2 \xff\n", "words_text:2: is not UTF-8"),
    ("words_text", WORDS.encode("utf-16"), "words_text:1: is not UTF-8"),
    ("acwt", ACOUSTIC + "u-2 1\n", "acwt:4: u-2 has no text"),
    ("acwt", "spk1-utt-1-1 1\n", "acwt: there is no line of spk1-utt-1-2"),
    ("acwt", ACOUSTIC.replace("119", "a"), "acwt:2: 'a' is not a number"),
    ("acwt", ACOUSTIC.replace("119", "nan"), "acwt:2: 'nan' is not a score"),
    ("lmwt.nolm", "spk1-utt-1-1\n", "lmwt.nolm:1: '' is not a number")])
def test_kaldi_errors_name_the_line(kaldi, file, text, error):
    put(kaldi / file, text)
    with pytest.raises(ValueError, match=f"^{kaldi}/{error}"):
        n_best.read_kaldi(kaldi)


# As asr_inference.py writes with --nbest 3: scores as PyTorch prints them, or
# as numbers; a short utterance has fewer hypotheses.
RANKS = {
    1: {"text": "u1 the cat\nu2 a\u2028b\n", "token": "u1 ▁the ▁c at\nu2 ▁a b\n",
        "token_int": "u1 5 6 7\nu2 8 9\n",
        "score": "u1 tensor(-1.5)\nu2 tensor(-2., device='cuda:0')\n"},
    2: {"text": "u1 the cap\nu2  \n", "token": "u1 ▁the ▁cap\nu2 <space>\n",
        "token_int": "u1 5 10\nu2 2\n", "score": "u1 -2.5\nu2 -inf\n"},
    3: {"text": "u1 cap\n", "token": "u1 ▁cap\n", "token_int": "u1 10\n",
        "score": "u1 -4\n"}}


def put_ranks(folder, ranks):
    for rank, columns in ranks.items():
        for name, text in columns.items():
            put(folder / f"{rank}best_recog" / name, text)
    return folder


def test_espnet_has_a_folder_for_each_rank(tmp_path):
    first, second = n_best.read_espnet(put_ranks(tmp_path, RANKS))
    assert (first.name, second.name) == ("u1", "u2")
    assert [(each.text, each.score, each.length)
            for each in first.hypotheses] == [
        ("the cat", -1.5, 3), ("the cap", -2.5, 2), ("cap", -4, 1)]
    assert [(each.text, each.score, each.length)
            for each in second.hypotheses] == [
        ("a\u2028b", -2, 2), ("", -math.inf, 1)]


def test_espnet_jobs_are_read_in_their_order(tmp_path):
    for job in (2, 10):
        put_ranks(tmp_path / f"output.{job}", {1: {
            "text": f"u{job} a b\n", "score": f"u{job} -1\n"}})
    put(tmp_path / "output.log" / "1best_recog" / "text", "u0 a\n")
    lists = n_best.read_espnet(tmp_path)
    assert [each.name for each in lists] == ["u2", "u10"]
    assert lists[0].hypotheses[0].length == 2  # words, where no token file is
    put_ranks(tmp_path / "output.3", {1: {"text": "u2 a\n",
                                          "score": "u2 -1\n"}})
    with pytest.raises(ValueError, match="output.3: u2: is also there"):
        n_best.read_espnet(tmp_path)


def test_espnet_gets_the_same_folders_in_the_new_order(tmp_path):
    lists = n_best.read_espnet(put_ranks(tmp_path / "in", RANKS))
    n_best.write_espnet(tmp_path / "out", [
        Rescored(lists[0], [0.0] * 3, [-3.0, -1.0, -2.0]),
        Rescored(lists[1], [0.0] * 2, [-5.0, -6.0])])
    assert files(tmp_path / "out") == {
        "1best_recog/text": "u1 the cap\nu2 a\u2028b\n",
        "1best_recog/score": "u1 -1.0\nu2 -5.0\n",
        "1best_recog/token": "u1 ▁the ▁cap\nu2 ▁a b\n",
        "1best_recog/token_int": "u1 5 10\nu2 8 9\n",
        "2best_recog/text": "u1 cap\nu2 \n",
        "2best_recog/score": "u1 -2.0\nu2 -6.0\n",
        "2best_recog/token": "u1 ▁cap\nu2 <space>\n",
        "2best_recog/token_int": "u1 10\nu2 2\n",
        "3best_recog/text": "u1 the cat\n",
        "3best_recog/score": "u1 -3.0\n",
        "3best_recog/token": "u1 ▁the ▁c at\n",
        "3best_recog/token_int": "u1 5 6 7\n"}
    again = n_best.read_espnet(tmp_path / "out")
    assert [each.score for each in again[0].hypotheses] == [-1, -2, -3]


@pytest.mark.parametrize("rank, file, text, error", [
    (2, "text", "u1 the cap\nu2 \nu3 a\n",
     "2best_recog/text:3: u3 is not in 1best_recog"),
    (3, "score", "u1 -1\nu2 -1\n", "3best_recog/score:2: u2 has no text"),
    (1, "token", "u1 a\n", "1best_recog/token: there is no line of u2"),
    (2, "score", "u1 -1\n", "2best_recog/score: there is no line of u2"),
    (1, "score", "u1 tensor(a)\nu2 1\n", "1best_recog/score:1: 'tensor"),
    (1, "score", "u1 inf\nu2 1\n", "1best_recog/score:1: 'inf' is not a sc")])
def test_espnet_errors_name_the_line(tmp_path, rank, file, text, error):
    put(put_ranks(tmp_path, RANKS) / f"{rank}best_recog" / file, text)
    with pytest.raises(ValueError, match=f"^{tmp_path}/{error}"):
        n_best.read_espnet(tmp_path)


@pytest.mark.parametrize("file", ["text", "score"])
def test_espnet_needs_text_and_score(tmp_path, file):
    (put_ranks(tmp_path, RANKS) / "1best_recog" / file).unlink()
    with pytest.raises(FileNotFoundError, match=f"1best_recog/{file}"):
        n_best.read_espnet(tmp_path)


@pytest.mark.parametrize("missing, error", [
    ((1,), "1best_recog"), ((2,), "2best_recog"),
    ((1, 2), "1best_recog, 2best_recog"), ((1, 2, 3), "1best_recog")])
def test_espnet_needs_every_rank(tmp_path, missing, error):
    put_ranks(tmp_path, {rank: columns for rank, columns in RANKS.items()
                         if rank not in missing})
    with pytest.raises(ValueError, match=f"^{tmp_path}: there is no {error}$"):
        n_best.read_espnet(tmp_path)


def test_espnet_lists_have_no_gap(tmp_path):
    both = {"text": "u1 a\nu2 a\n", "score": "u1 -1\nu2 -1\n"}
    put_ranks(tmp_path, {1: both, 2: {"text": "u1 a\n", "score": "u1 -1\n"},
                         3: both})
    with pytest.raises(ValueError, match=(
            f"^{tmp_path}/3best_recog/text:2: u2 is not in 2best_recog$")):
        n_best.read_espnet(tmp_path)


def test_espnet_output_has_nothing_of_an_earlier_run(tmp_path):
    def write(ranks, count):
        source = put_ranks(tmp_path / f"in{count}", ranks)
        n_best.write_espnet(tmp_path / "out", [
            Rescored(each, [0.0] * len(each.hypotheses),
                     [-1.0] * len(each.hypotheses))
            for each in n_best.read_espnet(source)])
        return files(tmp_path / "out")

    assert "3best_recog/token" in write(RANKS, 3)
    put(tmp_path / "out" / "3best_recog" / "notes", "of the user")
    put(tmp_path / "out" / "best_recog" / "text", "of the user")
    assert write({1: {"text": "u1 a\n", "score": "u1 -1\n"}}, 1) == {
        "1best_recog/text": "u1 a\n", "1best_recog/score": "u1 -1.0\n",
        "3best_recog/notes": "of the user", "best_recog/text": "of the user"}
    assert not (tmp_path / "out" / "2best_recog").exists()


@pytest.mark.parametrize("form, read, write", [
    ("kaldi", n_best.read_kaldi, n_best.write_kaldi),
    ("espnet", n_best.read_espnet, n_best.write_espnet),
    ("nemo", lambda path: n_best.read_nemo(path, 2), n_best.write_nemo)])
def test_all_files_that_are_read_and_written_are_known(tmp_path, kaldi, form,
                                                       read, write):
    source = {"kaldi": kaldi, "nemo": tmp_path / "beams.tsv",
              "espnet": put_ranks(tmp_path / "in", RANKS)}[form]
    put(tmp_path / "beams.tsv", BEAMS)
    lists = read(source)
    known = set(n_best.files_read(form, source))
    assert known >= {path for path in source.rglob("*") if path.is_file()}
    assert source in known
    write(tmp_path / "out", [
        Rescored(each, [0.0] * len(each.hypotheses),
                 [0.0] * len(each.hypotheses)) for each in lists])
    assert {path.relative_to(tmp_path / "out").as_posix() for path in
            n_best.files_written(form, tmp_path / "out", lists)
            } == files(tmp_path / "out").keys()


# As eval_beamsearch_ngram_ctc.py writes with a beam of 2.
BEAMS = " the cat\t-1.5\nthe cap\t-2.5\na\t-3\n\t-4.0\n"


def test_nemo_has_a_line_for_each_candidate(tmp_path):
    put(tmp_path / "beams.tsv", BEAMS)
    lists = n_best.read_nemo(tmp_path / "beams.tsv", 2)
    assert [each.name for each in lists] == ["0", "1"]
    assert [(each.text, each.score, each.length)
            for each in lists[0].hypotheses + lists[1].hypotheses] == [
        ("the cat", -1.5, 8), ("the cap", -2.5, 7), ("a", -3, 1),
        ("", -4, 0)]


def test_nemo_gets_the_lines_with_their_new_scores(tmp_path):
    put(tmp_path / "beams.tsv", BEAMS)
    lists = n_best.read_nemo(tmp_path / "beams.tsv", 2)
    n_best.write_nemo(tmp_path / "out", [
        Rescored(lists[0], [0.0] * 2, [-2.0, -1.0]),
        Rescored(lists[1], [0.0] * 2, [-4.5, -4.5])])
    assert files(tmp_path / "out") == {
        "beams.tsv": " the cat\t-2.0\nthe cap\t-1.0\na\t-4.5\n\t-4.5\n",
        "text": "the cap\na\n"}
    assert n_best.read_nemo(tmp_path / "out" / "beams.tsv", 2)


@pytest.mark.parametrize("text, error", [
    ("a\t1\nb\n", ":2: is not TEXT, a tab, and SCORE"),
    ("a\t1\nb\tx\n", ":2: 'x' is not a number"),
    ("a\t1\nb\t1\nc\t1\n", ": 3 lines are not a multiple of the beam size, 2"),
    ("", ": is empty"), (b"a\xff\t1\n", ":1: is not UTF-8"),
    ("a\t1\n".encode("utf-16"), ":1: is not UTF-8")])
def test_nemo_errors_name_the_line(tmp_path, text, error):
    put(tmp_path / "b.tsv", text)
    with pytest.raises(ValueError, match=f"^{tmp_path}/b.tsv{error}"):
        n_best.read_nemo(tmp_path / "b.tsv", 2)


def test_the_first_of_equals_is_the_best():
    n_best_list = NBest("u", tuple(Hypothesis(text, 0, 0) for text in "abc"))
    result = Rescored(n_best_list, [], [-1.0, 2.0, 2.0])
    assert result.order == [1, 2, 0]
    assert result.best.text == "b"


def test_a_file_is_there_only_when_it_is_complete(tmp_path):
    def lines():
        yield "one"
        raise KeyError

    (tmp_path / "file").write_text("before")
    with pytest.raises(KeyError):
        n_best.write_lines(tmp_path / "file", lines())
    assert (tmp_path / "file").read_text() == "before"
