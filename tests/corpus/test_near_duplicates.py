import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus import near_duplicates
from tasks.corpus.near_duplicates import PERMUTATIONS, NearDuplicates, rows_per_band, triples


def clusters(texts: list[str], similarity: float) -> list[int]:
    near = NearDuplicates(similarity)
    for text in texts:
        near.add(text)
    return near.clusters(texts.__getitem__)


def test_near_duplicates_share_a_cluster_through_others() -> None:
    base = [f"word{index}" for index in range(100)]
    first, second, third = list(base), list(base), list(base)
    second[0] = "changed"
    third[0], third[99] = "changed", "other"
    texts = [" ".join(first), "something else entirely here", " ".join(third), " ".join(second)]
    assert clusters(texts, 0.97) == [0, 1, 0, 0]  # 97 of 99 triples each, 96 of 100 from the first to the third
    assert clusters(texts, 1.0) == [0, 1, 2, 3]


def test_case_and_white_space_make_no_difference_and_order_does() -> None:
    assert clusters(["One two\nthree four", "ONE  two three\tfour", "two one three four"], 1.0) == [0, 0, 2]


@pytest.mark.parametrize(("texts", "found"), [([], []), (["x"], [0]), (["x", "x"], [0, 0]), (["a b", "a c"], [0, 1])])
def test_few_and_short_texts(texts: list[str], found: list[int]) -> None:
    assert clusters(texts, 0.9) == found


def test_texts_without_words_are_alike() -> None:
    assert clusters(["", "a", " \n", "a b c d"], 0.9) == [0, 1, 0, 3]


def triples_of(text: str) -> set[tuple[str, ...]]:
    words = [word.decode() for word in text.casefold().encode().split()]
    return {tuple(words[start : start + 3]) for start in range(max(len(words) - 2, min(len(words), 1)))}


@given(st.lists(st.text(st.sampled_from("aAbé \n"), max_size=30), min_size=1, max_size=4))
def test_hashes_tell_triples_apart_text_by_text(texts: list[str]) -> None:
    wanted = [triples_of(text) for text in texts]
    hashes = [set(part.tolist()) for part in triples(texts)]
    assert [part.tolist() for part in triples(texts)] == [sorted(part) for part in hashes]
    for one, left in zip(wanted, hashes, strict=True):
        for other, right in zip(wanted, hashes, strict=True):
            assert (len(left), len(left & right)) == (len(one), len(one & other))


def test_long_words_count_whole() -> None:
    long = "x" * 100
    first, second, third = (part.tolist() for part in triples([f"{long}a", f"{long}b", f"{long}a"]))
    assert first == third != second


def test_bands_are_as_long_as_recall_allows() -> None:
    assert rows_per_band(1.0) == PERMUTATIONS
    assert rows_per_band(0.9) == 5  # missed: (1 − 0.9⁵)⁹ = 0.0003; with 6 rows (1 − 0.9⁶)⁸ = 0.002
    assert rows_per_band(0.05) == 1


def test_planted_near_duplicates_are_found_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_duplicates, "BATCH_CHARACTERS", 5000)
    rng = random.Random(0)
    originals = [[f"w{rng.randrange(3000)}" for _ in range(200)] for _ in range(150)]
    copies = [list(words) for words in originals[:50]]
    for number, words in enumerate(copies):
        for _ in range(number % 4):  # 3 changes of 198 triples: 189 of 207 shared, 0.913
            words[rng.randrange(200)] = "changed"
    texts = [" ".join(words) for words in originals + copies]
    assert clusters(texts, 0.9) == [*range(150), *range(50)]
