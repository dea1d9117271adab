"""What every benchmark states: its tasks as its official files give them, its prompt, and how replies are scored."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar

from tasks.evaluation.benchmarks.conversation import Message
from tasks.records import Finish, Record
from tasks.rewards.judge import Judge

BETWEEN_SUBSETS = " | "


class Task(Record):
    """One question of a benchmark. A benchmark adds fields of its own in a subclass.

    `context` is its long input, which the memory agent reads chunk by chunk; `question` is what is asked of it, and
    `instruction` the form of the answer, which only the agent's last turn sees. `subset` is what the official table
    splits by ("" where it does not); a task of several subsets ("hard | long") counts in each.
    """

    id: str
    context: str
    question: str
    instruction: str = ""
    gold: tuple[str, ...]
    subset: str = ""


T = TypeVar("T", bound=Task)


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """A whole reply to a task, thinking included, and why it ended."""

    task: T
    reply: str
    finish: Finish


class Score(Record):
    """Scores of one reply in 0..1: as the official code would give it, and as a careful reader would.

    Both are equal where the official scorer is sound. None is unscored (no judge, or its outage): a failure in the
    fixed denominator, and counted. `answered` says whether the reply states an answer.
    """

    official: float | None
    robust: float | None
    answered: bool


class Benchmark(Protocol[T]):
    """A benchmark: one file each in this folder."""

    name: ClassVar[str]
    source: ClassVar[str]  # the hub's data set and revision, or the code and commit, that the files are of

    def read(self, folder: Path) -> Iterator[T]:
        """Read the tasks from files in the official format, in order.

        Raises:
            InputError: no file is there, or a line is not what the format says (file, line and field named).
        """
        ...

    def prompt(self, task: T) -> str:
        """The user's turn in the official wording, its context whole."""
        ...

    def score(self, attempts: Sequence[Attempt[T]], judge: Judge | None) -> list[Score]:
        """A score per attempt, in order. Without a judge, what needs one is unscored."""
        ...


class Conversational(Benchmark[T], Protocol[T]):
    """A benchmark whose prompts are whole conversations; `prompt` is the same as one text, for what must be cut."""

    def turns(self, task: T) -> list[Message]:
        """The conversation, in the official wording, with the user's turn last."""
        ...
