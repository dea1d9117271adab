"""Tokens are estimated upwards, by hand-counted pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.generation.estimate import estimated_tokens
from tests.conftest import CHECKOUT


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" ", 0),
        ("a", 1),
        ("The cat sat", 3),
        ("capital", 3),  # 7 letters in threes
        ("Mount Reykjavik", 2 + 5),  # a long name in twos
        ("OSLO", 2),
        ("in 1987", 1 + 1 + 4),
        ("12,345.6", 8),
        ("x = f(y)", 6),
        ("a\n\n  b\tc", 5),
        ("北京", 3),  # 6 bytes in twos
        ("é", 1),
        ("🙂", 2),
        ("\ud800", 2),
    ],
)
def test_pieces_are_counted(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens


@given(st.text(), st.text())
def test_nothing_but_spaces_is_free_and_texts_add_up(one: str, other: str) -> None:
    assert estimated_tokens(one) >= len(one.split())
    both = estimated_tokens(f"{one}\n{other}")
    assert both <= estimated_tokens(one) + estimated_tokens(other) + 1


@given(st.text("北京是中华人民共和国的首都"))
def test_no_chinese_character_is_free(text: str) -> None:
    assert estimated_tokens(text) >= len(text)


def test_it_is_above_the_words_of_a_real_text() -> None:
    text = (CHECKOUT / "README.md").read_text("utf-8")
    assert estimated_tokens(text) > 1.3 * len(text.split())
    assert estimated_tokens(text) < len(text.encode()) / 2
