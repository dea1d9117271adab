"""Asking a model: counts, unscored samples, seeds."""

from tasks.filtering.trials import PROMPTS_PER_CALL, Examiner, Trials, seed_of, tally
from tasks.generation.base import Sampling
from tasks.records import AnswerKind, Verdict
from tests.filtering.builders import RuleGenerator, WordTokenizer, question

C, W, U = Verdict.CORRECT, Verdict.WRONG, Verdict.UNSCORED


def test_unscored_is_neither_right_nor_wrong() -> None:
    assert tally([C, U, W, C]) == Trials(correct=2, scored=3)
    assert tally([C, U, W, C]).rate == 2 / 3
    assert tally([U, U]).rate is None
    assert tally([]).rate is None


def test_every_sample_of_every_prompt_is_checked() -> None:
    generator = RuleGenerator(lambda prompt, sample: f"The answer is {'Paris' if sample % 2 else 'Oslo'}.")
    done: list[int] = []
    examiner = Examiner(generator, WordTokenizer(), done.append)  # type: ignore[arg-type]
    asked = [
        question(),
        question(gold=("Oslo",)),
        question(gold=("Rome",)),
        question(gold=(), kind=AnswerKind.TEXT),
    ]
    trials = examiner.ask(["p"] * 4, asked, Sampling(0.7, 0.95, 8, 3), "s")
    assert trials == [Trials(1, 3), Trials(2, 3), Trials(0, 3), Trials(0, 0)]
    assert done == [4]


def test_calls_are_small_and_have_seeds_of_their_own() -> None:
    generator = RuleGenerator(lambda prompt, sample: "")
    examiner = Examiner(generator, WordTokenizer(), lambda done: None)  # type: ignore[arg-type]
    number = 2 * PROMPTS_PER_CALL + 1
    assert len(examiner.ask(["p"] * number, [question()] * number, Sampling(0.7, 0.95, 8), "s")) == number
    assert len(set(generator.seeds)) == 3


def test_seeds_are_stable_and_fit_a_torch_generator() -> None:
    assert seed_of("0/grounding/0") == seed_of("0/grounding/0") != seed_of("0/grounding/4")
    assert 0 <= seed_of("x") < 2**63
