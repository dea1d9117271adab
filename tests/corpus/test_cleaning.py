import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus.cleaning import clean, pieces


@pytest.mark.parametrize(
    ("escaped", "text", "replaced", "removed"),
    [
        ("ok \\ud83d bad", "ok \ufffd bad", 1, 0),
        ("\\ude00\\ud83d", "\ufffd\ufffd", 2, 0),
        ("a \\ud83d\\ude00 b", "a \U0001f600 b", 0, 0),
        ("a\\u0000b", "ab", 0, 1),
        ("a\\u0007\\u001bb\\tc", "ab\tc", 0, 2),
        ("", "", 0, 0),
        ("   \\r\\n", "", 0, 0),
        ("line1\\r\\nline2\\rline3", "line1\nline2\nline3", 0, 0),
    ],
)
def test_what_breaks_later_stages_is_cleaned_and_counted(escaped: str, text: str, replaced: int, removed: int) -> None:
    cleaned = clean(json.loads(f'"{escaped}"'))
    assert (cleaned.text, cleaned.replaced, cleaned.removed) == (text, replaced, removed)


@given(st.text(st.characters(exclude_categories=())))
def test_clean_text_can_be_stored_and_is_clean(text: str) -> None:
    cleaned = clean(text)
    cleaned.text.encode("utf-8")
    assert "\r" not in cleaned.text
    assert "\0" not in cleaned.text
    assert clean(cleaned.text).text == cleaned.text


def words(text: str) -> int:
    return len(text.split())


def test_pieces_end_at_the_best_border() -> None:
    text = "One two. Three four.\n\nFive six seven.\nEight nine."
    assert pieces(text, 20, words) == [text]
    assert pieces(text, 5, words) == ["One two. Three four.", "Five six seven.\nEight nine."]
    assert pieces(text, 3, words) == ["One two.", "Three four.", "Five six seven.", "Eight nine."]
    assert pieces(text, 1, words) == text.split()
    assert pieces("abcd", 2, len) == ["ab", "cd"]
    assert pieces("", 3, words) == []


@given(st.text("ab .\n", max_size=60), st.integers(1, 12))
def test_pieces_fit_and_lose_nothing_but_blanks(text: str, limit: int) -> None:
    parts = pieces(text, limit, len)
    assert all(0 < len(part) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_changed_line_breaks_are_counted() -> None:
    assert (clean("a\r\nb\rc\nd").text, clean("a\r\nb\rc\nd").breaks, clean("a\nb").breaks) == ("a\nb\nc\nd", 2, 0)
