"""The verification stage on a small world, with a model that answers by rule."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pyarrow.parquet as pq
import pytest

from tasks.artifacts import read_items, write_documents, write_questions
from tasks.errors import InputError
from tasks.filtering import examination, verify
from tasks.filtering.examination import BATCH, Examined, batches, ground, robustness_exam, until_complete, withstand
from tasks.filtering.funnel import Outcome, Tally
from tasks.filtering.trials import Examiner
from tasks.generation import models
from tasks.params import LocalExecution, Params, load_params
from tasks.records import UNTRIED, AnswerKind, Document, Domain, Item, Question, Split, Trials
from tasks.tracking import NullTracker
from tests.filtering.builders import DiceGenerator, RuleGenerator, WordTokenizer, document, item, question

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


@pytest.fixture
def tracker(monkeypatch: pytest.MonkeyPatch) -> NullTracker:
    kept = NullTracker()

    @contextmanager
    def stage_run(name: str, params: Params) -> Iterator[NullTracker]:
        yield kept

    monkeypatch.setattr(verify, "stage_run", stage_run)
    return kept


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch, tracker: NullTracker) -> RuleGenerator:
    double = RuleGenerator(reads)
    monkeypatch.setattr(models, "open_generator", lambda folder, execution, threads: double)
    monkeypatch.setattr(verify, "check_checkpoint", lambda folder: None)
    for module in (verify, examination):
        monkeypatch.setattr(module, "ChatTokenizer", WordTokenizer)
    return double


def store(documents: list[Document], questions: list[Question]) -> None:
    write_documents(verify.DOCUMENTS, documents)
    write_questions(verify.SYNTHESIZED / "knowledge_graph.parquet", questions)


def read(split: str) -> list[Item]:
    return read_items(verify.VERIFIED / f"{split}.parquet")


def kept_from(asked: Item) -> Examined:
    return Examined(asked.question, Outcome.KEPT, asked)


def outcomes(examined: Sequence[Examined]) -> list[Outcome]:
    return [one.outcome for one in examined]


class TestStage:
    def test_every_split_is_written_with_its_checks(
        self, params: Params, generator: RuleGenerator, tracker: NullTracker
    ) -> None:
        store(*world())
        verify.run(params)
        assert tracker.datasets == {"synthesized": verify.SYNTHESIZED}
        train, held_out = read("train"), [*read("development"), *read("test")]
        without_model = ("splits", "answer_length", "near_duplicates", "contamination", "guessing", "grounding")
        assert (len(train), len(held_out)) == (12, 24)
        assert {one.checks for one in train} == {(*without_model, "robustness")}
        assert {one.trials for one in train} == {Trials(correct=1, scored=1, drawn=1)}
        assert {one.checks for one in held_out} == {without_model}
        assert {one.trials for one in held_out} == {UNTRIED}
        assert {one.pass_rate for one in (*train, *held_out)} == {None}

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

    def test_every_question_has_one_fate(self, params: Params, generator: RuleGenerator, tracker: NullTracker) -> None:
        documents, questions = world()
        twin = questions[0].model_copy(update={"id": "train-zz"})
        stray = questions[1].model_copy(update={"id": "stray", "document_ids": ("Landtest0",)})
        lost = questions[2].model_copy(update={"id": "lost", "document_ids": ("gone",)})
        hopeless = questions[3].model_copy(update={"gold": ("Elsewhere",)})
        huge = questions[4].model_copy(update={"id": "huge", "document_ids": ("tome",)})
        store(
            [*documents, document("tome", "word " * 200)],
            [*questions[:3], hopeless, *questions[4:], twin, stray, lost, huge],
        )
        verify.run(params)
        metrics = json.loads(verify.METRICS.read_text())
        rows = {(row["split"], row["outcome"]): row["count"] for row in metrics["rows"]}
        assert rows == {
            ("train", Outcome.KEPT): 11,
            ("train", Outcome.NEAR_DUPLICATE): 1,
            ("train", Outcome.OTHER_SPLIT): 1,
            ("train", Outcome.UNKNOWN_DOCUMENT): 1,
            ("train", Outcome.EVIDENCE_TOO_LONG): 1,
            ("train", Outcome.NOT_ROBUST): 1,
            ("development", Outcome.KEPT): 12,
            ("test", Outcome.KEPT): 12,
        }
        assert metrics["questions"] == sum(rows.values()) == 40
        assert metrics["samples"]["robustness"] == 11 + 8
        assert 36 < metrics["samples"]["grounding"] < 36 * 8
        fates = {row["id"]: (row["outcome"], row["detail"]) for row in pq.read_table(verify.FATES).to_pylist()}
        assert len(fates) == 40
        assert fates["train-zz"] == ("near_duplicate", "train-0")
        assert fates["huge"] == ("evidence_too_long", "")
        ((_, logged),) = tracker.steps
        assert logged["funnel/0_synthesised"] == 16
        assert logged["funnel/5_never_right_on_extended_context"] == 11
        assert logged["train/reading_comprehension/near_duplicate"] == 1
        assert tracker.artifacts == [verify.METRICS, verify.FUNNEL, verify.PICTURE]
        assert "| near duplicate | −1 | 13 | 13 | 13 |" in verify.FUNNEL.read_text()
        assert verify.PICTURE.read_bytes().startswith(b"\x89PNG")

    def test_same_seed_same_bytes(self, params: Params, generator: RuleGenerator) -> None:
        store(*world())
        verify.run(params)
        first = {path.name: path.read_bytes() for path in verify.VERIFIED.iterdir()}
        shutil.rmtree(verify.VERIFIED)
        generator.drawn.clear()
        verify.run(params)
        assert {path.name: path.read_bytes() for path in verify.VERIFIED.iterdir()} == first
        assert set(first) == {f"{split}.parquet" for split in SPLITS} | {"fates.parquet", "funnel.md", "questions.png"}

    def test_a_corpus_too_small_for_a_domain(
        self, params: Params, generator: RuleGenerator, capsys: pytest.CaptureFixture[str]
    ) -> None:
        documents, questions = world()
        store(documents, [one for one in questions if one.split != "train"] + questions[:1])
        verify.run(params)
        assert "reading_comprehension has 1 verified train questions of 1 synthesised and needs 2. Add doc" in (
            capsys.readouterr().out
        )
        assert len(read("train")) == 1  # what there is, is kept

    def test_a_corpus_that_leaves_nothing_to_train_on(self, params: Params, generator: RuleGenerator) -> None:
        documents, questions = world()
        store(documents, [one for one in questions if one.split != "train"])
        with pytest.raises(InputError, match=r"no training question is left; metrics/verify\.json says where"):
            verify.run(params)
        assert {path.name for path in verify.VERIFIED.iterdir()} > {"fates.parquet", "funnel.md", "questions.png"}
        rows = json.loads(verify.METRICS.read_text())["rows"]
        assert sum(row["count"] for row in rows) == len([one for one in questions if one.split != "train"])

    def test_nothing_synthesised(self, params: Params, generator: RuleGenerator) -> None:
        write_documents(verify.DOCUMENTS, world()[0])
        with pytest.raises(InputError, match=r"metrics/synthesize-"):
            verify.run(params)


@pytest.mark.parametrize("sampler", ["torch", "transformers", "vllm"])
def test_batches_are_fixed(sampler: Literal["torch", "transformers", "vllm"]) -> None:
    where, size = LocalExecution(type="local", sampler=sampler), BATCH[sampler]
    assert [len(batch) for batch in batches(range(2 * size + 1), where)] == [size, size, 1]
    assert list(batches([], where)) == []


class TestGrounding:
    def letter(self) -> Examined:
        options = ("Oslo", "Rome", "Bern", "Lima")
        return kept_from(item(question(gold=("A",), kind=AnswerKind.LETTER, options=options)))

    @pytest.mark.parametrize(
        ("answers", "kept", "drawn"),
        [
            ("BBB", True, 3),  # five more right ones make 5
            ("ABABB", True, 5),  # 2 of 5 leave 5 of 8
            ("AAAAABBB", True, 8),
            ("AAAAAA", False, 6),
            ("AABABAAA", False, 8),
        ],
    )
    def test_vf01_four_options_eight_samples(self, params: Params, answers: str, kept: bool, drawn: int) -> None:
        generator = RuleGenerator(lambda prompt, sample: f"The answer is {answers[sample]}.")
        (examined,) = ground([self.letter()], [0.0], params, examiner(generator))
        assert examined.outcome is (Outcome.KEPT if kept else Outcome.UNGROUNDED)
        assert (examined.item is not None) is kept
        assert examined.grounding.drawn == drawn
        assert len(generator.seeds) == len(set(generator.seeds)) == len(generator.prompts)

    def test_one_right_answer_drops_what_cannot_be_guessed(self, params: Params) -> None:
        generator = RuleGenerator(lambda prompt, sample: "Paris" if sample == 1 else "Oslo")
        asked = kept_from(item(question(gold=("Paris",)), documents=("Nothing.",)))
        (examined,) = ground([asked], [0.0], params, examiner(generator))
        assert (examined.outcome, examined.grounding.drawn) == (Outcome.UNGROUNDED, 2)

    def test_a_usual_answer_is_luck(self, params: Params) -> None:
        generator = RuleGenerator(lambda prompt, sample: "Paris" if sample < 4 else "Oslo")
        asked = kept_from(item(question(gold=("Paris",)), documents=("Nothing.",)))
        assert outcomes(ground([asked] * 2, [0.3, 0.0], params, examiner(generator))) == [
            Outcome.KEPT,
            Outcome.UNGROUNDED,
        ]

    def test_the_prompt_has_no_documents(self, params: Params) -> None:
        generator = RuleGenerator(lambda prompt, sample: "")
        ground([kept_from(item(question()))], [0.0], params, examiner(generator))
        assert set(generator.prompts) <= {"Question: What is the capital of France?"}

    def test_what_has_no_item_is_left_alone(self, params: Params) -> None:
        fallen = Examined(question(), Outcome.EVIDENCE_TOO_LONG)
        assert ground([fallen], [0.0], params, examiner(RuleGenerator(lambda *_: ""))) == [fallen]
        assert withstand([fallen], params, examiner(RuleGenerator(lambda *_: ""))) == [fallen]


class TestRobustness:
    def asked(self, name: str, split: Split = "train", **changes: object) -> Examined:
        made = item(question(name, text=f"Where is {name}?", split=split, **changes))  # type: ignore[arg-type]
        return kept_from(made.model_copy(update={"length_bucket": 30}))

    def test_the_first_right_answer_decides(self, params: Params) -> None:
        generator = RuleGenerator(lambda prompt, sample: "Paris" if "here" in prompt and sample >= 2 else "Oslo")
        examined = withstand([self.asked("here"), self.asked("there is none")], params, examiner(generator))
        assert outcomes(examined) == [Outcome.KEPT, Outcome.KEPT]
        generator = RuleGenerator(lambda prompt, sample: "Paris" if "x" in prompt and sample >= 2 else "Oslo")
        examined = withstand([self.asked("x"), self.asked("y")], params, examiner(generator))
        assert outcomes(examined) == [Outcome.KEPT, Outcome.NOT_ROBUST]
        assert [one.robustness.drawn for one in examined] == [4, 8]
        assert examined[0].item is not None
        assert examined[0].item.trials == Trials(correct=2, scored=4, drawn=4)

    def test_decisions_are_those_of_all_answers(self, params: Params) -> None:
        """And the pass rate of what is kept, once completed, as if it had never stopped."""
        asked = [self.asked(f"place {number}") for number in range(60)]
        early, all_ = DiceGenerator(), DiceGenerator()
        stopped = withstand(asked, params, examiner(early))
        whole = [robustness_exam(one.item, params, until_complete(params)) for one in asked if one.item]
        full = examiner(all_).examine(whole)
        assert [one.outcome is Outcome.KEPT for one in stopped] == [trials.correct > 0 for trials in full]
        assert Outcome.NOT_ROBUST in outcomes(stopped)
        assert early.drawn < all_.drawn == 480
        kept = [one.item for one in stopped if one.item]
        completed = [robustness_exam(one, params, until_complete(params)) for one in kept]
        rates = examiner(early).examine(completed)
        assert rates == [trials for trials in full if trials.correct]

    def test_nothing_scored_is_not_failed(self, params: Params) -> None:
        generator = RuleGenerator(lambda prompt, sample: "The answer is Paris.")
        examined = withstand([self.asked("a", gold=(), kind=AnswerKind.TEXT)], params, examiner(generator))
        assert outcomes(examined) == [Outcome.UNSCORED]

    def test_held_out_items_are_not_asked(self, params: Params) -> None:
        generator = RuleGenerator(lambda prompt, sample: "")
        held_out = [self.asked("t", split="test"), self.asked("d", split="development")]
        assert withstand(held_out, params, examiner(generator)) == held_out
        assert generator.prompts == []


def test_an_empty_funnel() -> None:
    empty = Tally().funnel()
    assert (empty.questions, empty.kept, empty.rows, empty.lengths) == (0, 0, (), ())


def test_a_domain_without_weight_needs_no_questions(params: Params) -> None:
    weightless = params.rl.model_copy(update={"domain_weights": {Domain.MULTI_HOP: 0.0}})
    assert list(verify.shortages(Tally(), params.model_copy(update={"rl": weightless}))) == []
    assert list(verify.shortages(Tally(), params)) != []
