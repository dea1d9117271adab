"""Near-duplicates, split disjointness and lengths by hand."""

import pytest

from tasks.errors import InputError
from tasks.filtering.contamination import Leak, check_splits, leak_of
from tasks.filtering.deduplication import near_duplicates
from tasks.filtering.lengths import bucket_of, deal
from tasks.records import AnswerKind, Question
from tests.filtering.builders import document, question


def asked(name: str, text: str, gold: str = "2") -> Question:
    return question(name, text=text, gold=(gold,))


class TestNearDuplicates:
    def test_same_words_same_answer(self) -> None:
        first = asked("a", "What is the total number of provinces of Chad and Mali?")
        again = asked("b", "What is the total number of the provinces of Mali and Chad?")
        assert near_duplicates([first, again], 0.8) == {"b": "a"}
        assert near_duplicates([first, again], 0.95) == {}

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            (asked("a", "How many reports mention Niger?"), asked("b", "How many reports mention Nigeria?")),
            (asked("a", "What happened in 1998 in Chad?"), asked("b", "What happened in 1999 in Chad?")),
            (asked("a", "What is the capital?", "Oslo"), asked("b", "What is the capital?", "Rome")),
        ],
    )
    def test_another_name_number_or_answer_is_another_question(self, left: Question, right: Question) -> None:
        assert near_duplicates([left, right], 0.5) == {}

    def test_letters_are_compared_by_their_text(self) -> None:
        def choice(name: str, letter: str, options: tuple[str, ...]) -> Question:
            return question(name, text="Where?", gold=(letter,), kind=AnswerKind.LETTER, options=options)

        first = choice("a", "A", ("Oslo", "Rome"))
        assert near_duplicates([first, choice("b", "B", ("Rome", "Oslo"))], 0.9) == {"b": "a"}
        assert near_duplicates([first, choice("b", "A", ("Rome", "Oslo"))], 0.9) == {}

    def test_a_chain_keeps_its_first(self) -> None:
        same = [asked(name, "How many?") for name in "abc"]
        assert near_duplicates(same, 0.9) == {"b": "a", "c": "a"}
        assert near_duplicates([], 0.9) == {}


class TestSplits:
    def test_evidence_must_lie_in_the_questions_split(self) -> None:
        documents = {one.id: one for one in (document("a", "x"), document("t", "y", split="test"))}
        assert leak_of(question(documents=("a",)), documents) is None
        assert leak_of(question(documents=("a", "t")), documents) is Leak.OTHER_SPLIT
        assert leak_of(question(documents=("a", "gone")), documents) is Leak.UNKNOWN_DOCUMENT

    def test_a_cluster_in_two_splits(self) -> None:
        pair = [document("a", "x", cluster="africa"), document("b", "y", cluster="africa", split="test")]
        with pytest.raises(InputError, match=r"'a' \(train\) and 'b' \(test\) have the same cluster"):
            check_splits(pair)

    def test_a_copied_text_in_two_splits(self) -> None:
        with pytest.raises(InputError, match="same text"):
            check_splits([document("a", "Some  text."), document("b", "some text", split="test")])

    def test_copies_within_a_split_are_no_leak(self) -> None:
        check_splits([document("a", "x"), document("b", "x"), document("c", "y", split="test")])


class TestLengths:
    @pytest.mark.parametrize(
        ("shortest", "dealt"),
        [
            ([10] * 6, [128, 128, 256, 256, 512, 512]),
            ([10] * 4, [128, 128, 256, 512]),
            ([200, 10, 10], [256, 128, 512]),
            ([200, 200, 200], [256, 256, 512]),
            ([600, 10], [None, 128]),
            ([], []),
        ],
    )
    def test_even_deal(self, shortest: list[int], dealt: list[int | None]) -> None:
        assert deal(shortest, [128, 256, 512]) == dealt

    @pytest.mark.parametrize(("tokens", "bucket"), [(1, 128), (128, 128), (129, 256), (512, 512), (513, None)])
    def test_bucket_of(self, tokens: int, bucket: int | None) -> None:
        assert bucket_of(tokens, [128, 256, 512]) == bucket
