"""The checks that need all questions at once, and no model: the first part of verification."""

from collections.abc import Callable, Mapping, Sequence

from tasks.filtering.benchmarks import benchmark_texts
from tasks.filtering.contamination import Survey, Watch, answer_texts, asked_and_answered, leak_of
from tasks.filtering.deduplication import near_duplicates
from tasks.filtering.funnel import SPLITS, Fate, Outcome
from tasks.filtering.guessing import guessable
from tasks.params import FilteringParams
from tasks.records import Question

HELD_OUT = {"development": "our development split", "test": "our test split"}
Drops = Mapping[str, tuple[Outcome, str]]  # question → its outcome and the detail


def screen(
    questions: Sequence[Question], known: Survey, params: FilteringParams, count: Callable[[str], int]
) -> tuple[list[Question], list[Fate]]:
    """Drop what leaves its split, answers too long, repeats, what an evaluation set holds, and what can be guessed.

    Args:
        count: tokens of a text.
    """
    checks: tuple[Callable[[Sequence[Question]], Drops], ...] = (
        lambda left: _leaks(left, known),
        lambda left: _long_answers(left, params.max_answer_tokens, count),
        lambda left: _repeats(left, params.near_duplicate_similarity),
        lambda left: _contaminated(left, known, params),
        lambda left: dict.fromkeys(guessable(left), (Outcome.GUESSABLE, "")),
    )
    left, fates = list(questions), []
    for check in checks:
        drops = check(left)
        fates += [Fate(question, *drops[question.id]) for question in left if question.id in drops]
        left = [question for question in left if question.id not in drops]
    return left, fates


def _leaks(questions: Sequence[Question], known: Survey) -> Drops:
    leaks = {question.id: leak_of(question, known.splits) for question in questions}
    return {name: (Outcome(leak), "") for name, leak in leaks.items() if leak}


def _long_answers(questions: Sequence[Question], most: int, count: Callable[[str], int]) -> Drops:
    """SPELL's guard: an answer that is an essay cannot be compared by rules."""
    lengths = {question.id: count(", ".join(answer_texts(question))) for question in questions}
    return {name: (Outcome.ANSWER_TOO_LONG, f"{length} tokens") for name, length in lengths.items() if length > most}


def _repeats(questions: Sequence[Question], similarity: float) -> Drops:
    repeats: dict[str, str] = {}
    for split in SPLITS:
        repeats |= near_duplicates([one for one in questions if one.split == split], similarity)
    return {name: (Outcome.NEAR_DUPLICATE, original) for name, original in repeats.items()}


def _contaminated(questions: Sequence[Question], known: Survey, params: FilteringParams) -> Drops:
    """Training questions that stand in a held-out split or in a benchmark."""
    training = [question for question in questions if question.split == "train"]
    watch = Watch(training, known.texts, params.contamination_ngram)
    for question in questions:
        if question.split in HELD_OUT:
            watch.look(asked_and_answered(question), HELD_OUT[question.split])
    for text, name in benchmark_texts(params.benchmarks) if params.benchmarks else ():
        watch.look(text, name)
    return {name: (Outcome.CONTAMINATED, source) for name, source in watch.hits.items()}
