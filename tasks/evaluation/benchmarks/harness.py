"""MMLU-Pro, AIME and GPQA Diamond by EleutherAI's lm-eval: its definitions, its prompts, its scores.

lm-eval renders each prompt, with the worked examples before it, and scores each reply; sampling is the runner's, as for
any benchmark. So a reply is as long as this project allows, not as a definition's `generation_kwargs` do (MMLU-Pro:
2,048 tokens, too few to reason), and the stop strings of a definition cut what follows the reasoning.
"""

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar

import yaml

from tasks.errors import InputError
from tasks.evaluation.benchmarks.base import Attempt, Score, Task
from tasks.evaluation.benchmarks.files import HOW_TO_GET
from tasks.records import AnswerKind
from tasks.rewards.extraction import visible
from tasks.rewards.judge import Judge
from tasks.rewards.rules import Gold, examine, reward_of

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance
    from lm_eval.api.task import ConfigurableTask

VERSION = "0.4.13"
SHUFFLE_SEED = 0  # of GPQA's choices; lm-eval's own default
_LETTER = re.compile(r"\(?([A-J])\)?")


class HarnessTask(Task):
    """A question as lm-eval renders it. `row` is its document as JSON, `stops` are the strings that end a reply."""

    definition: str
    folder: Path
    row: str
    stops: tuple[str, ...]


class Harness:
    """One of lm-eval's tasks or groups, on a folder with the data as the hub has them."""

    name: ClassVar[str]
    source: ClassVar[str]
    area: ClassVar[str]  # lm-eval's folder of definitions: to index all of them takes a minute
    definition: ClassVar[str]

    def read(self, folder: Path) -> Iterator[HarnessTask]:
        """Read the data and render the prompts.

        Raises:
            InputError: lm-eval is not installed, or cannot read the data.
        """
        for name, definition in _load(self.area, self.definition, folder).items():
            yield from (_task(definition, request, name, folder) for request in definition.instances)

    def prompt(self, task: HarnessTask) -> str:
        """As lm-eval rendered it."""
        return task.question

    def score(self, attempts: Sequence[Attempt[HarnessTask]], judge: Judge | None) -> list[Score]:
        """Official: lm-eval's first metric under its first filter. Robust: the stated letter or number."""
        del judge  # rules decide both kinds
        return [
            Score(
                official=self._official(attempt),
                robust=reward_of(checked.verdict),
                answered=checked.extracted is not None,
            )
            for attempt in attempts
            for checked in (examine(attempt.reply, attempt.finish, _gold(attempt.task)),)
        ]

    def _official(self, attempt: Attempt[HarnessTask]) -> float:
        task = attempt.task
        return _scored(_load(self.area, self.definition, task.folder)[task.definition], task, _ended(attempt))


class MmluPro(Harness):
    """Ten choices, 14 subjects; five worked examples before each question."""

    name: ClassVar = "mmlu_pro"
    source: ClassVar = f"TIGER-Lab/MMLU-Pro by lm-eval {VERSION}, mmlu_pro"
    area: ClassVar = "mmlu_pro"
    definition: ClassVar = "mmlu_pro"


class Aime24(Harness):
    """30 competition problems of 2024, each answered by an integer."""

    name: ClassVar = "aime24"
    source: ClassVar = f"Maxwell-Jia/AIME_2024 by lm-eval {VERSION}, aime24"
    area: ClassVar = "aime"
    definition: ClassVar = "aime24"


class Aime25(Harness):
    """30 competition problems of 2025, each answered by an integer."""

    name: ClassVar = "aime25"
    source: ClassVar = f"math-ai/aime25 by lm-eval {VERSION}, aime25"
    area: ClassVar = "aime"
    definition: ClassVar = "aime25"


class GpqaDiamond(Harness):
    """198 questions of four shuffled choices, asked to think step by step."""

    name: ClassVar = "gpqa_diamond"
    source: ClassVar = f"Idavidrein/gpqa by lm-eval {VERSION}, gpqa_diamond_cot_zeroshot"
    area: ClassVar = "gpqa"
    definition: ClassVar = "gpqa_diamond_cot_zeroshot"


@cache
def _load(area: str, definition: str, folder: Path) -> "Mapping[str, ConfigurableTask]":
    """lm-eval's tasks by name, with their requests."""
    if find_spec("lm_eval") is None:
        raise InputError(f"{definition} needs lm-eval, which is not installed: pip install --editable '.[lm-eval]'")
    state = random.getstate()
    random.seed(SHUFFLE_SEED)
    try:
        loaded = _defined(area, definition, folder)
        for task in loaded.values():
            task.build_all_requests()
    except Exception as error:  # of datasets, Arrow, pandas, or the definition's own code on rows of another form
        raise InputError(f"lm-eval cannot read {folder} as {definition} ({error}); {HOW_TO_GET}") from error
    finally:
        random.setstate(state)
    return loaded


def _defined(area: str, definition: str, folder: Path) -> "Mapping[str, ConfigurableTask]":
    """A definition's tasks on our data: fields of a group are passed on to all that is in it."""
    import lm_eval.tasks

    definitions = Path(lm_eval.tasks.__file__).parent / area
    with TemporaryDirectory() as own:
        group = {"group": "local", "task": [definition], "dataset_path": str(folder)}
        (Path(own) / "local.yaml").write_text(yaml.safe_dump(group), encoding="utf-8")
        manager = lm_eval.tasks.TaskManager(include_path=[definitions, own], include_defaults=False)
        loaded: Mapping[str, ConfigurableTask] = manager.load("local")["tasks"]
    return loaded


def _task(definition: "ConfigurableTask", request: "Instance", name: str, folder: Path) -> HarnessTask:
    prompt, settings = request.args
    return HarnessTask(
        id=f"{name}-{request.doc_id}",
        context="",
        question=prompt,
        gold=(str(definition.doc_to_target(request.doc)),),
        subset=definition.config.task_alias or "",
        definition=name,
        folder=folder,
        row=json.dumps(request.doc),
        stops=tuple(settings["until"]),
    )


def _scored(definition: "ConfigurableTask", task: HarnessTask, reply: str) -> float:
    """lm-eval's way from a reply to a score: filters, then the metric; the first of each is the one it reports."""
    from lm_eval.api.instance import Instance

    row = json.loads(task.row)
    request = Instance("generate_until", row, (task.question, {}), 0, (task.definition, 0, 1), resps=[reply])
    definition = copy(definition)  # which keeps the requests of the whole task
    definition._instances = [request]
    definition.apply_filters()
    metrics = definition.process_results(row, [next(iter(request.filtered_resps.values()))])
    return float(next(iter(metrics.values())))


def _ended(attempt: Attempt[HarnessTask]) -> str:
    """What follows the reasoning, up to the first stop string; "" where the reasoning never ended."""
    shown = (visible(attempt.reply, attempt.finish) or "").lstrip()
    return min((shown.partition(stop)[0] for stop in attempt.task.stops), key=len, default=shown)


def _gold(task: HarnessTask) -> Gold:
    """A letter, in parentheses or not, or a number."""
    (gold,) = task.gold
    letter = _LETTER.fullmatch(gold)
    return Gold((letter[1],), AnswerKind.LETTER) if letter else Gold((gold,), AnswerKind.NUMBER)


MMLU_PRO = MmluPro()
AIME24 = Aime24()
AIME25 = Aime25()
GPQA_DIAMOND = GpqaDiamond()
