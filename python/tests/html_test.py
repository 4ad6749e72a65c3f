import math
import re

import pytest

from txl_client import html
from txl_client.events import Generation, Token


@pytest.mark.parametrize("probability, number", [
    (0.0, 0), (0.05, 0), (0.15, 1), (0.55, 5), (0.85, 8), (0.95, 9), (1.0, 9)])
def test_ten_classes_part_the_probabilities(probability, number):
    logprob = math.log(probability) if probability else -math.inf
    assert html.probability_class(logprob) == number


def test_a_turn_shows_its_tokens_by_class_with_their_numbers():
    turn = Generation(None, (Token(0, 5, "To", math.log(0.95)),
                             Token(1, 6, "", -1.0),
                             Token(2, 7, " be", math.log(0.05))), None)
    shown = turn._repr_html_()
    spans = re.findall(r'<span class="(p\d)" title="([^"]*)">([^<]*)', shown)
    assert spans == [
        ("p9", "id 5, p 0.9500", "To"), ("p0", "id 7, p 0.0500", " be")]


def test_markup_in_a_text_is_text():
    shown = Generation(None, (Token(0, 1, "<script>&\"'", 0.0),),
                       None)._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;&amp;&quot;&#x27;" in shown
    assert html.page([], "<b>").endswith("&lt;b&gt;</div>")


def test_unlikely_tokens_are_underlined_and_not_by_color_alone():
    rules = dict(re.findall(r"\.(p\d)\{([^}]*)\}", html.STYLE))
    assert sorted(rules) == [f"p{n}" for n in range(10)]
    lines = [int((re.search(r"border-bottom:(\d)px", rules[f"p{n}"])
                  or [0, 0])[1]) for n in range(10)]
    assert lines == [3, 2, 1, 0, 0, 0, 0, 0, 0, 0]
    assert len({re.search(r"background:(#\w+)", rule)[1]
                for rule in rules.values()}) == 10


def test_what_a_notebook_shows_is_the_whole_text(client):
    turn = client.generate("ROMEO:", max_tokens=40, seed=2)
    shown = turn._repr_html_()
    text = re.sub(r"<style>.*?</style>|<[^>]*>", "", shown, flags=re.DOTALL)
    assert text.replace("&#x27;", "'").replace("&amp;", "&") == turn.text
