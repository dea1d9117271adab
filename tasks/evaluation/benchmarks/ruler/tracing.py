"""Variable tracking: a chain of assignments scattered in noise (RULER, variable_tracking.py)."""

import random
import string
from itertools import pairwise

from tasks.evaluation.benchmarks.ruler.needles import NOISE
from tasks.evaluation.benchmarks.ruler.samples import Places, Puzzle, Sample, distinct

TEMPLATE = (
    "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n{context}\n"
    "Question: Find all variables that are assigned the value {value} in the text above."
)
PREFIX = (
    " Answer: According to the chain(s) of variable assignment in the text above, {variables} variables are assigned "
    "the value {value}, they are: "
)
VARIABLES = 5  # one is assigned the value, and four hops follow
LETTERS, EXAMPLE_LETTERS = 5, 3  # of a variable's name
EXAMPLE_NOISE = 10  # lines; officially what 500 tokens hold


def tracing_puzzle(rng: random.Random) -> Puzzle:
    """A puzzle after a worked example; its size counts lines of noise."""
    example = _chain(EXAMPLE_LETTERS, rng).at(EXAMPLE_NOISE)
    shown = f"{example.prompt} {' '.join(example.outputs)}\n\n"
    asked = _chain(LETTERS, rng)

    def at(size: int) -> Sample:
        sample = asked.at(size)
        return Sample(shown + sample.input, sample.answer_prefix, sample.outputs)

    return Puzzle(asked.smallest, at)


def _chain(letters: int, rng: random.Random) -> Puzzle:
    names = distinct(lambda: "".join(rng.choices(string.ascii_uppercase, k=letters)), VARIABLES, ("VAR",))
    value = str(rng.randint(10_000, 99_998))
    lines = [f"VAR {names[0]} = {value}"]
    lines += [f"VAR {name} = VAR {before} " for before, name in pairwise(names)]
    places = Places.draw(len(lines), rng)

    def at(size: int) -> Sample:
        context = "\n".join(places.insert(lines, [NOISE] * size))
        return Sample(
            TEMPLATE.format(context=context, value=value),
            PREFIX.format(variables=VARIABLES, value=value),
            tuple(names),
        )

    return Puzzle(0, at)
