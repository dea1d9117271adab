"""More inputs of the kind VF-01: a filter removes, guessing explains some right answers, pass@k of nothing is 0."""

from pathlib import Path

import pytest

from tasks.artifacts import read_items, write_items
from tasks.filtering.examination import Examined, ground, robustness_exam, until_complete, withstand
from tasks.filtering.funnel import Outcome
from tasks.filtering.grounding import Grounding, drop_threshold, judge_grounding
from tasks.filtering.robustness import pass_at_k
from tasks.filtering.trials import Examiner
from tasks.params import Params
from tasks.records import AnswerKind
from tests.filtering.builders import RuleGenerator, WordTokenizer, item, question


def examiner(generator: RuleGenerator) -> Examiner:
    return Examiner(generator, WordTokenizer(), lambda _: None)  # type: ignore[arg-type]


def pool(number: int, **changes: object) -> list[Examined]:
    """Training items whose questions differ by their number."""
    made = [item(question(f"q{n}", text=f"Is it {n:03}?", **changes)) for n in range(number)]  # type: ignore[arg-type]
    return [Examined(one.question, Outcome.KEPT, one) for one in made]


def test_vf01_a_filter_removes_what_it_flags(params: Params, tmp_path: Path) -> None:
    """Thirty of a hundred are never right: seventy rows are left, none of them one of the thirty."""
    generator = RuleGenerator(lambda prompt, sample: "Oslo" if int(prompt[-4:-1]) < 30 else "Paris")
    examined = withstand(pool(100), params, examiner(generator))
    write_items(tmp_path / "kept.parquet", [one.item for one in examined if one.item])
    assert [one.question.id for one in read_items(tmp_path / "kept.parquet")] == [f"q{n}" for n in range(30, 100)]
    assert [one.outcome for one in examined].count(Outcome.NOT_ROBUST) == 30


def test_vf01_guessing_does_not_delete_good_multiple_choice(params: Params) -> None:
    """A guesser who names the letters in turn is right in two of eight samples, once at least in all of them."""
    options = ("Oslo", "Rome", "Bern", "Lima")
    generator = RuleGenerator(lambda prompt, sample: f"The answer is {'ABCD'[sample % 4]}.")
    asked = pool(100, gold=("A",), kind=AnswerKind.LETTER, options=options)
    examined = ground(asked, [0.0] * 100, params, examiner(generator))
    assert {one.outcome for one in examined} == {Outcome.KEPT}


def test_vf01_samples_are_no_copies_of_one_generation(params: Params) -> None:
    generator = RuleGenerator(lambda prompt, sample: "Oslo")
    exams = [robustness_exam(one.item, params, until_complete(params)) for one in pool(3) if one.item]
    examiner(generator).examine(exams)
    assert len(generator.seeds) == len(set(generator.seeds)) == 3 * 8


@pytest.mark.parametrize(
    ("samples", "correct", "k", "value"),
    [(5, 0, 5, 0.0), (1, 0, 9, 0.0), (5, 1, 5, 1.0), (5, 1, 1, 0.2), (4, 2, 2, 5 / 6), (3, 3, 1, 1.0)],
)
def test_vf01_pass_at_k(samples: int, correct: int, k: int, value: float) -> None:
    assert pass_at_k(samples, correct, k) == pytest.approx(value)


@pytest.mark.parametrize(
    ("samples", "chance", "threshold"),
    [
        (8, 0.25, 6),  # four options: P(X ≥ 5) = 2.7 %, P(X ≥ 6) = 0.4 %
        (8, 0.5, 8),  # two options: P(X = 8) = 0.39 %
        (4, 0.5, 5),  # even four of four are luck (6 %): never dropped
        (8, 0.0, 1),  # what cannot be guessed is known at the first right answer
        (8, 1.0, 9),  # one candidate only: right answers show nothing
        (16, 0.25, 9),  # P(X ≥ 8) = 2.7 %, P(X ≥ 9) = 0.75 %
    ],
)
def test_vf01_only_more_than_luck_drops(samples: int, chance: float, threshold: int) -> None:
    assert drop_threshold(samples, chance) == threshold
    assert judge_grounding(threshold - 1, samples, samples, chance) is Grounding.GROUNDED
    if threshold <= samples:
        assert judge_grounding(threshold, samples, samples, chance) is Grounding.UNGROUNDED


def test_vf01_early_stopping_waits_until_the_rest_cannot_matter() -> None:
    assert judge_grounding(5, 7, 8, 0.25) is Grounding.UNDECIDED
    assert judge_grounding(4, 7, 8, 0.25) is Grounding.GROUNDED
    assert judge_grounding(6, 6, 8, 0.25) is Grounding.UNGROUNDED
