"""MMLU-Pro, AIME and GPQA by lm-eval's own definitions, on files in the official schema.

Most of these run where the extra `lm-eval` is installed.
"""

import json
import random
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tasks.errors import InputError
from tasks.evaluation.benchmarks import harness
from tasks.evaluation.benchmarks.base import Attempt
from tasks.evaluation.benchmarks.harness import AIME24, AIME25, GPQA_DIAMOND, MMLU_PRO, HarnessTask
from tasks.records import Finish

FIXTURE = Path(__file__).parent / "fixtures" / "harness"
needs_harness = pytest.mark.skipif(find_spec("lm_eval") is None, reason="needs the extra lm-eval")
SUBJECTS = (
    "biology business chemistry computer_science economics engineering health history law math other philosophy "
    "physics psychology"
).split()
THOUGHT = "<think>Question: is it (A)? \\boxed{9}</think>"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """datasets keeps what it reads by the folder's name and time: no test reads another's."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


def scored(task: HarnessTask, reply: str, finish: Finish = Finish.FINISHED) -> tuple[float | None, float | None, bool]:
    benchmark = {"aime25": AIME25, "aime24": AIME24}.get(task.definition, GPQA_DIAMOND)
    benchmark = MMLU_PRO if task.definition.startswith("mmlu_pro") else benchmark
    (score,) = benchmark.score([Attempt(task, reply, finish)], None)
    return score.official, score.robust, score.answered


def test_without_lm_eval_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(harness, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"aime25 needs lm-eval.*\[lm-eval\]"):
        list(AIME25.read(tmp_path))


@needs_harness
def test_aime() -> None:
    rows, remainder = AIME25.read(FIXTURE / "aime25")
    assert AIME25.prompt(rows) == f"Question: {json.loads(rows.row)['problem']}\nAnswer:"
    assert (rows.id, rows.gold, rows.subset) == ("aime25-0", ("3",), "")
    assert scored(rows, f"{THOUGHT}It is $\\boxed{{3}}$.") == (1, 1, True)
    assert scored(rows, f"{THOUGHT}It is $\\boxed{{13}}$.") == (0, 0, True)
    assert scored(rows, "3") == (1, 1, True)
    assert scored(rows, "\\boxed{3}\n\nQuestion: and \\boxed{4}?")[0] == 1  # the definition stops there
    assert scored(rows, "The answer is 3.") == (0, 1, True)  # lm-eval's compares the whole reply
    assert scored(remainder, "\\boxed{1.0}") == (0, 1, True)
    assert scored(rows, "", Finish.FINISHED) == (0, 0, False)
    assert scored(rows, "<think>\\boxed{3}", Finish.TRUNCATED) == (0, 0, False)


@needs_harness
def test_scoring_leaves_the_tasks_as_they_are() -> None:
    before = list(AIME25.read(FIXTURE / "aime25"))
    attempts = [Attempt(task, reply, Finish.FINISHED) for reply in ("\\boxed{3}", "\\boxed{1}") for task in before]
    assert [score.official for score in AIME25.score(attempts, None)] == [1, 0, 0, 1]
    assert list(AIME25.read(FIXTURE / "aime25")) == before
    assert AIME25.score([], None) == []


@needs_harness
def test_the_older_aime_has_other_names() -> None:
    (task,) = AIME24.read(FIXTURE / "aime24")
    assert task.gold == ("45",)
    assert scored(task, "\\boxed{45}") == (1, 1, True)


@needs_harness
def test_gpqa_is_shuffled_the_same_way_every_time(tmp_path: Path) -> None:
    state = random.getstate()
    tasks = list(GPQA_DIAMOND.read(FIXTURE / "gpqa_diamond"))
    assert random.getstate() == state
    for task in tasks:
        row = json.loads(task.row)
        (letter,) = task.gold
        right = row["choices"]["ABCD".index(letter[1])]
        assert right == row["Correct Answer"]
        assert f"{letter} {right}" in task.question
        assert scored(task, f"{THOUGHT}The answer is {letter}.") == (1, 1, True)
        assert scored(task, f"I would pick {letter[1]}.") == (0, 1, True)
        other = "(A)" if letter != "(A)" else "(B)"
        assert scored(task, f"The answer is {other}.") == (0, 0, True)
    random.seed(5)
    again = GPQA_DIAMOND.read(shutil.copytree(FIXTURE / "gpqa_diamond", tmp_path / "again"))
    assert [task.question for task in again] == [task.question for task in tasks]


@needs_harness
def test_mmlu_pro_has_its_examples_and_subjects(tmp_path: Path) -> None:
    def row(subject: str, number: int) -> dict[str, object]:
        return {
            "question_id": number,
            "question": f"Question {number} of {subject}?",
            "options": ["one", "two", "three"],
            "answer": "B",
            "answer_index": 1,
            "cot_content": "A: Let's think step by step. The answer is (B).",
            "category": subject.replace("_", " "),
        }

    folder = tmp_path / "data"
    folder.mkdir()
    for split, numbers in (("test", [9]), ("validation", range(5))):
        lines = [json.dumps(row(subject, number)) for subject in SUBJECTS for number in numbers]
        (folder / f"{split}.jsonl").write_text("\n".join(lines))
    tasks = list(MMLU_PRO.read(folder))
    assert [task.subset for task in tasks] == SUBJECTS
    assert [task.id for task in tasks][:2] == ["mmlu_pro_biology-0", "mmlu_pro_business-0"]
    assert tasks[0].question.count("Let's think step by step. The answer is (B).") == 5
    assert tasks[0].question.endswith("C. three\nAnswer: Let's think step by step.")
    assert scored(tasks[0], f"{THOUGHT}So the answer is (B).") == (1, 1, True)
    assert scored(tasks[0], f"{THOUGHT}So I choose B.") == (0, 1, True)
    assert scored(tasks[0], "The answer is (J).") == (0, 0, True)


@needs_harness
@pytest.mark.parametrize(("name", "text"), [("test.jsonl", '{"odd": 1}\n'), ("test.jsonl", "{"), ("notes.txt", "")])
def test_data_of_another_form_are_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=r"lm-eval cannot read .* as aime25 \(.+\); docs/benchmarks\.md"):
        list(AIME25.read(tmp_path))
