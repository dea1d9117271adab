"""A subtask's samples, each as long as a limit allows."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tasks.errors import InputError
from tasks.evaluation.benchmarks.ruler.samples import Counter, Puzzle, Sample, largest_size
from tasks.evaluation.benchmarks.ruler.subtasks import REPLY_TOKENS, Material, puzzle_of


@dataclass(frozen=True)
class Series:
    """The samples of one subtask: prompt in the chat template and room for the reply fill at most `limit` tokens, and
    would not with one more unit of haystack.
    """

    name: str
    material: Material
    counter: Counter
    limit: int
    seed: int

    def puzzle(self, index: int) -> Puzzle:
        """The index-th puzzle, whatever came before it."""
        rng = random.Random(f"{self.seed} {self.name} {index}")
        return puzzle_of(self.name, index, self.material, self.limit, rng)

    def length(self, sample: Sample) -> int:
        """Tokens of prompt and reply."""
        return self.counter.prompt_length(sample.prompt) + REPLY_TOKENS[self.name]

    def smallest(self, index: int) -> int:
        """Tokens of the index-th puzzle without a haystack."""
        puzzle = self.puzzle(index)
        return self.length(puzzle.at(puzzle.smallest))

    def lines(self, samples: int) -> Iterator[str]:
        """The official file, line by line."""
        size = 0
        for index in range(samples):
            puzzle = self.puzzle(index)
            size = largest_size(lambda size: self.length(puzzle.at(size)), self.limit, puzzle.smallest, size)  # noqa: B023  called at once
            yield json.dumps(self._fields(index, puzzle.at(size)))

    def _fields(self, index: int, sample: Sample) -> dict[str, object]:
        return {
            "index": index,
            "input": sample.input,
            "outputs": sample.outputs,
            "length": self.counter.count(sample.prompt) + REPLY_TOKENS[self.name],
            "length_w_model_temp": self.length(sample),
            "answer_prefix": sample.answer_prefix,
        }


def check_room(series: Sequence[Series], samples: int) -> None:
    """Refuse a limit that some puzzle exceeds without any haystack.

    Raises:
        InputError: which subtasks, and how many tokens they need.
    """
    needs = {one.name: max(one.smallest(index) for index in range(samples)) for one in series}
    tight = [f"{one.name} {needs[one.name]}" for one in series if needs[one.name] > one.limit]
    if tight:
        raise InputError(
            f"--length {series[0].limit} is too short: without a haystack, {', '.join(tight)} tokens are needed; "
            "raise it, or name the others with --subtasks"
        )
