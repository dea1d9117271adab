import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus.names import LONGEST_KEPT, key, mentions, remembered, words


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("Nigeria exports oil.", "Niger", False),
        ("Niger, Mali and Chad", "niger", True),
        ("France's capital", "FRANCE", True),
        ("the Côte d’Ivoire coast", "Côte d'Ivoire", True),
        ("ＩＢＭ was founded", "IBM", True),  # full width
        ("東京は日本の首都です。", "日本", True),  # no spaces between words
        ("東京は日本の首都です。", "大阪", False),
        ("서울은 한국의 수도이다", "서울", True),  # a particle sticks to the name
        ("กรุงเทพเป็นเมืองหลวง", "กรุงเทพ", True),
        ("New York City", "New City", False),
        ("anything", "", False),
        ("anything ???", "???", False),
        ("", "a", False),
    ],
)
def test_a_name_is_mentioned_as_whole_words(text: str, name: str, expected: bool) -> None:
    assert mentions(text, name) is expected


def test_keys_and_words_have_one_form() -> None:
    assert key("  New\tYORK ") == key("Ｎｅｗ york") == "new york"
    assert words("Straße, 東京!") == " strasse 東 京 "


def test_long_texts_are_not_kept() -> None:
    computed = []
    measure = remembered(lambda text: computed.append(text) or len(text))
    long = "x" * (LONGEST_KEPT + 1)
    assert [measure(text) for text in ("ab", "ab", long, long)] == [2, 2, len(long), len(long)]
    assert computed == ["ab", long, long]


@given(st.text(max_size=30), st.text(max_size=30))
def test_words_are_stable_and_what_stands_between_others_is_mentioned(one: str, other: str) -> None:
    assert words(words(one)) == words(one)
    assert mentions(f"{other} {one} {other}", one) is bool(words(one).strip())
    assert key(key(one)) == key(one)
