"""Which of two answers is better: asked in both orders, because judges favour a place."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from tasks.generation.chat import ChatModel, Unanswered
from tasks.generation.fencing import fenced
from tasks.rewards.judging.asking import Inquiry, ask, fits
from tasks.rewards.judging.purposes import GUARD
from tasks.rewards.judging.rulings import Words
from tasks.rewards.judging.tally import Tally

WINDOW = 512  # pairs, each asked twice


class Choice(StrEnum):
    """What one reply prefers."""

    FIRST = "first"
    SECOND = "second"
    EQUAL = "equal"
    UNPARSED = "unparsed"


class Preference(StrEnum):
    """What both orders together say. A judge that changes its mind with the order has none: a tie."""

    LEFT = "left"
    RIGHT = "right"
    TIE = "tie"
    UNSCORED = "unscored"


@dataclass(frozen=True)
class Pair:
    """Two answers to one question; the reference may be empty."""

    question: str
    left: str
    right: str
    reference: str = ""


CHOICE = Words(
    meanings={"FIRST": Choice.FIRST, "SECOND": Choice.SECOND, "EQUAL": Choice.EQUAL},
    shown=("FIRST", "SECOND", "EQUAL"),
    unparsed=Choice.UNPARSED,
)
TASK = (
    "Decide which answer serves the question better: first by being right, then by saying all that was asked for, then "
    "by saying nothing beside it. Their order, their length and their tone do not count."
)
_IN_ORDER = {Choice.FIRST: Preference.LEFT, Choice.SECOND: Preference.RIGHT, Choice.EQUAL: Preference.TIE}
_SWAPPED = {Choice.FIRST: Preference.RIGHT, Choice.SECOND: Preference.LEFT, Choice.EQUAL: Preference.TIE}


def prefer(model: ChatModel, pairs: Iterable[Pair], tally: Tally) -> Iterator[Preference]:
    """The preference of each pair, in order, drawing a window of pairs at a time."""
    coming = iter(pairs)
    while window := list(islice(coming, WINDOW)):
        yield from _preferences(model, window, tally)


def _preferences(model: ChatModel, pairs: Sequence[Pair], tally: Tally) -> Iterator[Preference]:
    prompts = [_prompts(pair) for pair in pairs]
    fitting = [all(fits(model, prompt) for prompt in both) for both in prompts]
    inquiries = [Inquiry(prompt, CHOICE) for both, fit in zip(prompts, fitting, strict=True) if fit for prompt in both]
    outcomes = ask(model, inquiries, tally)
    choices = iter(outcomes)
    for fit in fitting:
        preference = _agreed(next(choices), next(choices)) if fit else Preference.UNSCORED
        if preference is Preference.UNSCORED:
            tally.unscored("no verdict in one of the two orders" if fit else "both answers exceed the judge's context")
        yield preference


def _prompts(pair: Pair) -> tuple[str, str]:
    return _prompt(pair, pair.left, pair.right), _prompt(pair, pair.right, pair.left)


def _prompt(pair: Pair, first: str, second: str) -> str:
    texts = [("question", pair.question), ("first answer", first), ("second answer", second)]
    if pair.reference:
        texts.insert(1, ("reference", pair.reference))
    shown = "\n".join(fenced(text, label) for label, text in texts)
    return f"{GUARD}\n\n{shown}\n\n{TASK}\n{CHOICE.request}"


def _agreed(in_order: Choice | Unanswered, swapped: Choice | Unanswered) -> Preference:
    if isinstance(in_order, Unanswered) or isinstance(swapped, Unanswered):
        return Preference.UNSCORED
    left = _IN_ORDER.get(in_order, Preference.UNSCORED)
    right = _SWAPPED.get(swapped, Preference.UNSCORED)
    if Preference.UNSCORED in (left, right):
        return Preference.UNSCORED
    return left if left is right else Preference.TIE
