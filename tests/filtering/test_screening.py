"""Near-duplicates, split disjointness and lengths by hand."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import InputError
from tasks.filtering import deduplication
from tasks.filtering.benchmarks import benchmark_texts
from tasks.filtering.contamination import COMMON, Leak, Watch, asked_and_answered, leak_of, survey
from tasks.filtering.deduplication import near_duplicates, repeated
from tasks.filtering.funnel import Outcome
from tasks.filtering.lengths import bucket_of, deal, remembered
from tasks.filtering.screening import screen
from tasks.params import FilteringParams, Params
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

    @given(st.lists(st.lists(st.sampled_from("abcdefghij"), min_size=8, max_size=12), max_size=30))
    def test_what_hashes_propose_and_all_pairs_agree(self, texts: list[list[str]]) -> None:
        """MinHash may miss a pair; at this similarity about one in a billion."""
        exact = repeated(texts, 0.95)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deduplication, "LARGE", 0)
            assert repeated(texts, 0.95) == exact

    def test_a_large_group_is_compared_exactly(self) -> None:
        """Templated questions share most words: the hashes propose nearly all of them, and nearly none is one."""
        words = [
            f"in which of all the reports of that year does the word w{number} stand".split() for number in range(400)
        ]
        assert repeated(words, 0.95) == {}
        assert repeated([*words, words[7]], 0.95) == {400: 7}


class TestSplits:
    def test_evidence_must_lie_in_the_questions_split(self) -> None:
        splits = survey([document("a", "x"), document("t", "y", split="test")]).splits
        assert leak_of(question(documents=("a",)), splits) is None
        assert leak_of(question(documents=("a", "t")), splits) is Leak.OTHER_SPLIT
        assert leak_of(question(documents=("a", "gone")), splits) is Leak.UNKNOWN_DOCUMENT
        assert leak_of(question(documents=()), splits) is None

    def test_a_cluster_in_two_splits(self) -> None:
        pair = [document("a", "x", cluster="africa"), document("b", "y", cluster="africa", split="test")]
        with pytest.raises(InputError, match=r"'a' \(train\) and 'b' \(test\) have the same cluster"):
            survey(pair)

    def test_a_copied_text_in_two_splits(self) -> None:
        with pytest.raises(InputError, match="same text"):
            survey([document("a", "Some  text."), document("b", "some text", split="test")])

    def test_copies_within_a_split_are_no_leak(self) -> None:
        known = survey([document("a", "x"), document("b", "x"), document("c", "y", split="test")])
        assert len(known.texts) == 2


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

    def test_a_text_is_counted_once(self) -> None:
        asked: list[str] = []
        count = remembered(lambda text: asked.append(text) or len(text))  # type: ignore[func-returns-value]
        assert [count("ab"), count("abc"), count("ab"), count("")] == [2, 3, 2, 0]
        assert asked == ["ab", "abc", ""]

    @pytest.mark.parametrize(("tokens", "bucket"), [(1, 128), (128, 128), (129, 256), (512, 512), (513, None)])
    def test_bucket_of(self, tokens: int, bucket: int | None) -> None:
        assert bucket_of(tokens, [128, 256, 512]) == bucket


LONG = "In which year did the port authority of the northern harbour buy its second icebreaker?"  # 13, and articles


class TestContamination:
    def watch(self, *questions: Question, ngram: int = 13) -> Watch:
        return Watch(questions, {}, ngram)

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            (LONG, True),
            (f"Please answer. {LONG.upper()} Thank you.", True),
            (LONG.removeprefix("In "), True),  # 12 words and the answer
            (LONG.removeprefix("In which "), False),
            (LONG.replace("northern", "southern"), False),
            (LONG.removesuffix("icebreaker?"), False),  # 12 words, and then another
            ("", False),
        ],
    )
    def test_a_run_of_words(self, text: str, found: bool) -> None:
        watch = self.watch(question("a", text=LONG, gold=("1975",)))
        watch.look(f"{text} 1975" if text else "", "exam.jsonl")
        assert watch.hits == ({"a": "exam.jsonl"} if found else {})

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("What is the capital of France?", True),
            ("what is  the capital of FRANCE", True),
            ("What is the capital of France? Paris", True),
            ("What is the capital of France? Lyon", False),
            ("They asked: What is the capital of France?", False),
        ],
    )
    def test_a_short_question_must_be_the_whole_text(self, text: str, found: bool) -> None:
        watch = self.watch(question("a"))
        watch.look(text, "exam.jsonl")
        assert bool(watch.hits) is found

    def test_the_first_set_is_named(self) -> None:
        watch = self.watch(question("a"))
        watch.look("What is the capital of France?", "first")
        watch.look("What is the capital of France?", "second")
        assert watch.hits == {"a": "first"}

    @pytest.mark.parametrize(("number", "found"), [(COMMON, COMMON), (COMMON + 1, 0)])
    def test_a_phrase_of_many_questions_is_a_template(self, number: int, found: int) -> None:
        watch = self.watch(*(question(f"q{one}", text=f"{LONG} {one}", gold=(str(one),)) for one in range(number)))
        watch.look(LONG, "exam")
        assert len(watch.hits) == found

    def test_a_question_on_an_evaluation_sets_document(self) -> None:
        known = survey([document("d", "Paris lies on the Seine."), document("e", "Oslo lies on a fjord.")])
        watch = Watch([question("a"), question("b", documents=("e",))], known.texts, 13)
        watch.look("paris lies on the Seine", "exam")
        assert watch.hits == {"a": "exam"}

    def test_the_answer_of_a_letter_is_its_option(self) -> None:
        asked = question(text="Where?", gold=("B",), kind=AnswerKind.LETTER, options=("Rome", "Oslo"))
        assert asked_and_answered(asked) == "Where? Oslo"

    def test_a_question_without_a_word_is_in_no_set(self) -> None:
        watch = self.watch(question("a", text="?", gold=("!",)))
        watch.look("...", "exam")
        assert watch.hits == {}


class TestBenchmarks:
    def test_every_string_of_every_form(self, tmp_path: Path) -> None:
        (tmp_path / "deep").mkdir()
        nested = {"data": [{"q": "one", "n": 3, "options": ["two", None]}]}
        (tmp_path / "a.json").write_text(json.dumps(nested))
        (tmp_path / "deep/b.jsonl").write_text('{"q": "three"}\n\n"four"\n')
        pq.write_table(pa.table({"x": [1, 2], "y": ["five", None], "z": [["six"], []]}), tmp_path / "c.parquet")
        (tmp_path / "notes.txt").write_text("not read")
        assert sorted(benchmark_texts(tmp_path)) == [
            ("five", "c.parquet"),
            ("four", "deep/b.jsonl"),
            ("one", "a.json"),
            ("six", "c.parquet"),
            ("three", "deep/b.jsonl"),
            ("two", "a.json"),
        ]

    @pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.parquet"])
    def test_a_broken_file_is_named(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_bytes(b"\xff{")
        with pytest.raises(InputError, match=f"{name} cannot be read"):
            list(benchmark_texts(tmp_path))

    def test_a_folder_without_sets(self, tmp_path: Path) -> None:
        for folder in (tmp_path, tmp_path / "missing"):
            with pytest.raises(InputError, match=r"holds no \.json, \.jsonl, \.parquet file; put evaluation sets"):
                list(benchmark_texts(folder))


class TestScreen:
    def screened(self, asked: list[Question], params: FilteringParams) -> dict[str, tuple[Outcome, str]]:
        known = survey([document("d", "x"), document("t", "y", split="test")])
        left, fates = screen(asked, known, params, lambda text: len(text.split()))
        assert len(left) + len(fates) == len(asked)
        return {fate.question.id: (fate.outcome, fate.detail) for fate in fates}

    def test_every_drop_has_a_reason(self, params: Params, tmp_path: Path) -> None:
        (tmp_path / "exam.json").write_text(json.dumps([{"q": "How high is the Ben Nevis?"}]))
        asked = [
            question("fine", text="What is the river of France?", gold=("Seine",)),
            question("lost", documents=("gone",)),
            question("long", gold=("word " * 41,)),
            question("twin", text="What is the river of France?", gold=("Seine",)),
            question("known", text="How high is the Ben Nevis?", gold=("1345",), kind=AnswerKind.NUMBER),
            question("copy", text="Who built it?", gold=("Eiffel",)),
            question("original", text="Who built it?", gold=("Eiffel",), documents=("t",), split="test"),
            question("told", text="Which town is Paris?"),
        ]
        filtering = params.filtering.model_copy(update={"benchmarks": tmp_path})
        assert self.screened(asked, filtering) == {
            "lost": (Outcome.UNKNOWN_DOCUMENT, ""),
            "long": (Outcome.ANSWER_TOO_LONG, "41 tokens"),
            "twin": (Outcome.NEAR_DUPLICATE, "fine"),
            "known": (Outcome.CONTAMINATED, "exam.json"),
            "copy": (Outcome.CONTAMINATED, "our test split"),
            "told": (Outcome.GUESSABLE, ""),
        }

    @pytest.mark.parametrize(("words", "kept"), [(40, True), (41, False)])
    def test_spells_answer_guard(self, params: Params, words: int, kept: bool) -> None:
        asked = question(gold=("word " * words,))
        assert (self.screened([asked], params.filtering) == {}) is kept

    def test_nothing(self, params: Params) -> None:
        assert self.screened([], params.filtering) == {}
