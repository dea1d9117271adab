"""The verification stage on a small world, with a model that answers by rule."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tasks.artifacts import read_items, write_documents, write_questions
from tasks.errors import InputError
from tasks.filtering import verify
from tasks.filtering.funnel import Outcome, funnel
from tasks.filtering.trials import Examiner
from tasks.generation.local import LocalGenerator
from tasks.params import Params, load_params
from tasks.records import AnswerKind, Document, Domain, Item, Question, Split
from tasks.tracking import NullTracker
from tests.filtering.builders import RuleGenerator, WordTokenizer, document, item, question

SPLITS: tuple[Split, ...] = ("train", "development", "test")
OVERRIDES = (
    "rl.domain_weights={reading_comprehension: 1.0}",
    "rl.batch_prompts=2",
    "rl.stages.stage1.max_input_tokens=30",
    "rl.stages.stage2.max_input_tokens=60",
    "rl.stages.stage3.max_input_tokens=120",
)


@pytest.fixture
def params(scratch: Path) -> Params:
    return load_params(overrides=OVERRIDES)


def world() -> tuple[list[Document], list[Question]]:
    """Twelve countries a split, one document and one question each."""
    documents, questions = [], []
    for split in SPLITS:
        for number in range(12):
            country, capital = f"Land{split}{number}", f"City{split}{number}"
            documents.append(document(country, f"The capital of {country} is {capital}.", split=split))
            asked = question(
                f"{split}-{number}",
                text=f"What is the capital of {country}?",
                gold=(capital,),
                documents=(country,),
                split=split,
            )
            facts = {"facts": [["capital", country.casefold()]]}
            questions.append(asked.model_copy(update={"provenance": facts}))
    return documents, questions


def reads(prompt: str, sample: int) -> str:
    """Finds the capital in the documents in the even samples; knows nothing without them."""
    documents, _, asked = prompt.rpartition("Question: What is the capital of ")
    country = asked.removesuffix("?")
    found = documents.partition(f"The capital of {country} is ")[2].partition(".")[0]
    return f"The answer is {found}." if found and sample % 2 == 0 else "The answer is Nowhere."


def examiner(generator: RuleGenerator) -> Examiner:
    return Examiner(generator, WordTokenizer(), lambda done: None)  # type: ignore[arg-type]


@contextmanager
def _no_tracking(name: str, params: Params) -> Iterator[NullTracker]:
    yield NullTracker()


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> RuleGenerator:
    double = RuleGenerator(reads)
    monkeypatch.setattr(LocalGenerator, "load", lambda folder: double)
    monkeypatch.setattr(verify, "check_checkpoint", lambda folder: None)
    monkeypatch.setattr(verify, "ChatTokenizer", WordTokenizer)
    monkeypatch.setattr(verify, "stage_run", _no_tracking)
    return double


def store(documents: list[Document], questions: list[Question]) -> None:
    write_documents(verify.DOCUMENTS, documents)
    write_questions(verify.SYNTHESIZED / "knowledge_graph.parquet", questions)


def read(split: str) -> list[Item]:
    return read_items(verify.VERIFIED / f"{split}.parquet")


class TestStage:
    def test_every_split_is_written_with_its_checks(self, params: Params, generator: RuleGenerator) -> None:
        store(*world())
        verify.run(params)
        train, held_out = read("train"), [*read("development"), *read("test")]
        assert (len(train), len(held_out)) == (12, 24)
        assert {one.pass_rate for one in train} == {0.5}
        assert {one.checks for one in train} == {("splits", "near_duplicates", "grounding", "robustness")}
        assert {one.pass_rate for one in held_out} == {None}
        assert {one.checks for one in held_out} == {("splits", "near_duplicates", "grounding")}

    def test_the_extended_context_of_one_split_is_stored(self, params: Params, generator: RuleGenerator) -> None:
        store(*world())
        verify.run(params)
        for split in SPLITS:
            items = read(split)
            assert Counter(one.length_bucket for one in items) == {30: 4, 60: 4, 120: 4}
            for one in items:
                assert set(one.question.document_ids) < set(one.document_ids)
                assert all(f"Land{split}" in name for name in one.document_ids)
                assert one.input_tokens <= one.length_bucket
        assert not any("Landtest" in prompt for prompt in generator.prompts if "Document 1" in prompt)

    def test_every_question_has_one_fate(self, params: Params, generator: RuleGenerator) -> None:
        documents, questions = world()
        twin = questions[0].model_copy(update={"id": "train-zz"})
        stray = questions[1].model_copy(update={"id": "stray", "document_ids": ("Landtest0",)})
        lost = questions[2].model_copy(update={"id": "lost", "document_ids": ("gone",)})
        hopeless = questions[3].model_copy(update={"gold": ("Elsewhere",)})
        store(documents, [*questions[:3], hopeless, *questions[4:], twin, stray, lost])
        verify.run(params)
        metrics = json.loads(verify.METRICS.read_text())
        rows = {(row["split"], row["outcome"]): row["count"] for row in metrics["rows"]}
        assert rows == {
            ("train", Outcome.KEPT): 11,
            ("train", Outcome.NEAR_DUPLICATE): 1,
            ("train", Outcome.OTHER_SPLIT): 1,
            ("train", Outcome.UNKNOWN_DOCUMENT): 1,
            ("train", Outcome.NOT_ROBUST): 1,
            ("development", Outcome.KEPT): 12,
            ("test", Outcome.KEPT): 12,
        }
        assert metrics["questions"] == sum(rows.values()) == 39

    def test_same_seed_same_bytes(self, params: Params, generator: RuleGenerator) -> None:
        store(*world())
        verify.run(params)
        first = (verify.VERIFIED / "train.parquet").read_bytes()
        verify.run(params)
        assert (verify.VERIFIED / "train.parquet").read_bytes() == first

    def test_a_corpus_too_small_for_a_domain(self, params: Params, generator: RuleGenerator) -> None:
        documents, questions = world()
        store(documents, [one for one in questions if one.split != "train"] + questions[:1])
        with pytest.raises(InputError, match=r"reading_comprehension has 1 verified train .* needs 2; add doc"):
            verify.run(params)
        assert not verify.VERIFIED.exists()

    def test_nothing_synthesised(self, params: Params, generator: RuleGenerator) -> None:
        write_documents(verify.DOCUMENTS, world()[0])
        with pytest.raises(InputError, match=r"run python -m tasks\.synthesis\.synthesize"):
            verify.run(params)


class TestGrounding:
    def letter(self) -> Item:
        options = ("Oslo", "Rome", "Bern", "Lima")
        return item(question(gold=("A",), kind=AnswerKind.LETTER, options=options))

    @pytest.mark.parametrize(("right", "kept"), [(0, True), (5, True), (6, False), (8, False)])
    def test_vf01_four_options_eight_samples(self, params: Params, right: int, kept: bool) -> None:
        answers = iter("A" * right + "B" * (8 - right))
        generator = RuleGenerator(lambda prompt, sample: f"The answer is {next(answers)}.")
        sieved = verify.ground([self.letter()], params, examiner(generator))
        assert bool(sieved.items) is kept
        assert [fate.outcome for fate in sieved.dropped] == ([] if kept else [Outcome.UNGROUNDED])

    def test_rounds_have_distinct_seeds_and_stop_when_decided(self, params: Params) -> None:
        generator = RuleGenerator(lambda prompt, sample: "The answer is B.")
        verify.ground([self.letter()], params, examiner(generator))
        assert [sampling.samples for sampling in generator.samplings] == [4]  # 4 wrong: 6 of 8 is out of reach
        answers = iter("AABBBBBB")  # 2 of 4 leave 6 of 8 open
        unsure = RuleGenerator(lambda prompt, sample: f"The answer is {next(answers)}.")
        assert len(verify.ground([self.letter()], params, examiner(unsure)).items) == 1
        assert len(set(unsure.seeds)) == 2

    def test_the_prompt_has_no_documents(self, params: Params) -> None:
        generator = RuleGenerator(lambda prompt, sample: "")
        verify.ground([item(question())], params, examiner(generator))
        assert set(generator.prompts) == {"Question: What is the capital of France?"}


class TestRobustness:
    def test_nothing_scored_is_not_failed(self, params: Params) -> None:
        generator = RuleGenerator(lambda prompt, sample: "The answer is Paris.")
        goldless = item(question(gold=(), kind=AnswerKind.TEXT)).model_copy(update={"length_bucket": 30})
        sieved = verify.withstand([goldless], params, examiner(generator))
        assert [fate.outcome for fate in sieved.dropped] == [Outcome.UNSCORED]

    def test_held_out_items_are_not_asked(self, params: Params) -> None:
        generator = RuleGenerator(lambda prompt, sample: "")
        held_out = [item(question("t", split="test")), item(question("d", split="development"))]
        assert verify.withstand(held_out, params, examiner(generator)).items == tuple(held_out)
        assert generator.prompts == []


def test_an_empty_funnel() -> None:
    empty = funnel([], [])
    assert (empty.questions, empty.kept, empty.rows, empty.lengths) == (0, 0, (), ())


def test_a_domain_without_weight_needs_no_questions(params: Params) -> None:
    weightless = params.rl.model_copy(update={"domain_weights": {Domain.MULTI_HOP: 0.0}})
    verify.check_domains([], params.model_copy(update={"rl": weightless}))
