"""The stage on a tiny random model, every checkpoint and mode; and answers by a scripted one."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tasks.artifacts import read_items, write_documents, write_items
from tasks.errors import CheckpointError, InputError
from tasks.evaluation import evaluate as stage
from tasks.evaluation.answering import Reader, answer, prompt_of, read_long
from tasks.evaluation.files import LONG_ITEMS, METRICS, REPLIES, TEST_ITEMS, read_replies
from tasks.evaluation.scores import Evaluation
from tasks.generation.base import Completion
from tasks.generation.scripted import ScriptedGenerator
from tasks.params import Params
from tasks.progress import meter
from tasks.records import Document, Domain, Finish, Verdict
from tasks.tokenization import ChatTokenizer
from tasks.tracking import NullTracker
from tests.evaluation.conftest import ItemFactory


@pytest.fixture
def small(params: Params) -> Params:
    memory = params.memory.model_copy(update={"chunk_tokens": 8, "memory_tokens": 4, "plan_tokens": 2, "window": 80})
    evaluation = params.evaluation.model_copy(
        update={"samples": 2, "long_multiples": (2, 99), "long_questions": 2, "bootstrap_resamples": 50}
    )
    stages = {name: limits.model_copy(update={"max_output_tokens": 3}) for name, limits in params.rl.stages.items()}
    rl = params.rl.model_copy(update={"stages": stages})
    return params.model_copy(
        update={"base_model": Path("models/base"), "memory": memory, "evaluation": evaluation, "rl": rl}
    )


@pytest.fixture
def checkout(scratch: Path, model_folder: Path, item: ItemFactory, monkeypatch: pytest.MonkeyPatch) -> NullTracker:
    tracker = NullTracker()
    for name in ("models/base", *(f"checkpoints/{stage_name}" for stage_name in stage.TRAINED)):
        shutil.copytree(model_folder, scratch / name)
    write_items(TEST_ITEMS, [item("a"), item("b", Domain.DIALOGUE_MEMORY), item("a", tokens=256)])
    write_documents(stage.DOCUMENTS, [text_document(number) for number in range(25)])

    @contextmanager
    def stage_run(*_: object) -> Iterator[NullTracker]:
        yield tracker

    monkeypatch.setattr(stage, "stage_run", stage_run)
    return tracker


def text_document(number: int) -> Document:
    text = " ".join(["w1" if number == 0 else f"w{number}"] * 8)
    split = "train" if number > 20 else "test"
    return Document(
        id=f"d{number}", title="T", text=text, kind="text", cluster=f"c{number}", split=split, source="test"
    )


def test_stage(checkout: NullTracker, small: Params) -> None:
    stage.run(small)
    evaluation = Evaluation.model_validate_json(METRICS.read_text())
    assert [scores.checkpoint for scores in evaluation.checkpoints] == ["base", *stage.TRAINED]
    assert evaluation.lengths == (128, 256)
    assert evaluation.too_long == (99 * 80,)
    assert {(row.checkpoint, row.context_tokens) for row in evaluation.long} == {
        (name, 160) for name in stage.READS_LONG
    }
    replies = read_replies(REPLIES)
    modes = {
        mode: sum(reply.mode == mode for reply in replies) for mode in ("greedy", "sampled", "agent", "truncation")
    }
    assert modes == {"greedy": 7 * 3, "sampled": 7 * 3 * 2, "agent": 3 * 2, "truncation": 3 * 2}
    long = read_items(LONG_ITEMS)
    assert [each.question.id for each in long] == ["b", "a"]
    assert all(int(name[1:]) <= 20 for each in long for name in each.document_ids), "held-out documents only"
    ((step, figures),) = checkout.steps
    assert step == 0
    assert {"average/stage4/256", "average/base/all", "agent/stage4/160"} <= figures.keys()


def test_equal_checkpoints_gain_nothing(checkout: NullTracker, small: Params) -> None:
    """All seven folders hold the same weights, and every checkpoint draws the same random numbers."""
    stage.run(small)
    evaluation = Evaluation.model_validate_json(METRICS.read_text())
    gains = [cell.gain for scores in evaluation.checkpoints[1:] for cell in scores.cells]
    assert gains
    assert all(gain is not None and gain.difference == gain.low == gain.high == 0.0 for gain in gains)


def test_the_same_seed_gives_the_same_bytes(checkout: NullTracker, small: Params) -> None:
    stage.run(small)
    first = METRICS.read_bytes(), REPLIES.read_bytes(), LONG_ITEMS.read_bytes()
    stage.run(small)
    assert (METRICS.read_bytes(), REPLIES.read_bytes(), LONG_ITEMS.read_bytes()) == first


def test_a_broken_checkpoint_is_found_before_any_work(checkout: NullTracker, small: Params) -> None:
    Path("checkpoints/stage4/model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="stage4"):
        stage.run(small)
    assert not METRICS.exists()


def test_no_test_items(checkout: NullTracker, small: Params) -> None:
    write_items(TEST_ITEMS, [])
    with pytest.raises(InputError, match="holds no item"):
        stage.run(small)


def scripted(tokenizer: ChatTokenizer, params: Params, replies: list[str | Completion]) -> Reader:
    with meter("test", 1) as progress:
        return Reader("m", ScriptedGenerator(replies), tokenizer, params, progress)


def test_answers_are_checked_by_the_rewards_rules(tokenizer: ChatTokenizer, small: Params, item: ItemFactory) -> None:
    cut_off = Completion((4, 5), "<think> w1", Finish.TRUNCATED)
    reader = scripted(tokenizer, small, ["The answer is w1.", "The answer is w2.", cut_off, "w9 w9 w9"])
    prompts = [prompt_of(item("a"), 80, tokenizer), prompt_of(item("b"), 80, tokenizer)]
    replies = answer(reader, prompts, "sampled", reader.sampled)
    assert [(reply.question_id, reply.sample) for reply in replies] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
    ]
    assert [reply.verdict for reply in replies] == [Verdict.CORRECT, *[Verdict.WRONG] * 3]
    assert [reply.extracted for reply in replies] == [True, True, False, False]
    assert [reply.response_tokens for reply in replies[2:]] == [2, 8]
    assert replies[2].finish is Finish.TRUNCATED


def test_a_truncated_prompt_is_marked(tokenizer: ChatTokenizer, item: ItemFactory) -> None:
    documents = ("w1 w1 w1 w1", *("w2 w2 w2 w2" for _ in range(8)))
    whole = prompt_of(item(documents=documents, evidence=("d0",)), 200, tokenizer)
    assert (whole.cut, whole.evidence_cut) == (False, False)
    middle = prompt_of(item(documents=documents, evidence=("d4",)), 40, tokenizer)
    assert (middle.cut, middle.evidence_cut) == (True, True)
    assert len(middle.ids) <= 40
    front = prompt_of(item(documents=documents, evidence=("d0",)), 40, tokenizer)
    assert (front.cut, front.evidence_cut) == (True, False)


def test_the_agent_reads_everything(tokenizer: ChatTokenizer, small: Params, item: ItemFactory) -> None:
    documents = ("w1 w1 w1 w1 w1 w1 w1", "w2 w2 w2 w2 w2 w2 w2")
    update = "<memory> w1 </memory> <plan> w3 </plan>"
    reader = scripted(tokenizer, small, [update, update, "The answer is w1."])
    (reply,) = read_long(reader, [prompt_of(item(documents=documents), 40, tokenizer)])
    assert (reply.mode, reply.verdict, reply.cut) == ("agent", Verdict.CORRECT, False)
    assert reply.response_tokens == 2 * len(update) + len("The answer is w1.")
    assert len(reader.generator.prompts) == 3
