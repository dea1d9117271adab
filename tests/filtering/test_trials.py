"""Asking a model: counts, unscored samples, seeds, and exams that stop early."""

from dataclasses import replace

from tasks.filtering.trials import PROMPTS_PER_CALL, Exam, Examiner, Trials, seed_of, tally
from tasks.generation.base import Sampling
from tasks.records import UNTRIED, AnswerKind, Verdict
from tests.filtering.builders import DiceGenerator, RuleGenerator, WordTokenizer, question

C, W, U = Verdict.CORRECT, Verdict.WRONG, Verdict.UNSCORED


def trials(correct: int, scored: int, drawn: int) -> Trials:
    return Trials(correct=correct, scored=scored, drawn=drawn)


def examiner(generator: object) -> Examiner:
    return Examiner(generator, WordTokenizer(), lambda done: None)  # type: ignore[arg-type]


def exam(name: str, *, stop_at: int = 1, sizes: tuple[int, ...] = (1, 1, 2, 4), before: Trials = UNTRIED) -> Exam:
    """Over when so many answers are right; draws so many at a time."""
    starts = {sum(sizes[:place]): size for place, size in enumerate(sizes)}
    return Exam(
        question=question(name),
        prompt=f"Where is {name}?",
        sampling=Sampling(0.7, 0.95, 8),
        seed=name,
        wanted=lambda drawn: 0 if drawn.correct >= stop_at else starts.get(drawn.drawn, 0),
        trials=before,
    )


def test_unscored_is_neither_right_nor_wrong() -> None:
    assert tally([C, U, W, C]) == trials(2, 3, 4)
    assert tally([C, U, W, C]).rate == 2 / 3
    assert tally([U, U]).rate is None
    assert tally([]) == UNTRIED
    assert trials(1, 2, 3) + trials(1, 1, 1) == trials(2, 3, 4)


def test_every_sample_of_every_prompt_is_checked() -> None:
    generator = RuleGenerator(lambda prompt, sample: f"The answer is {'Paris' if sample % 2 else 'Oslo'}.")
    done: list[int] = []
    asking = Examiner(generator, WordTokenizer(), done.append)  # type: ignore[arg-type]
    asked = [question(), question(gold=("Oslo",)), question(gold=("Rome",)), question(gold=(), kind=AnswerKind.TEXT)]
    found = asking.ask(["a", "b", "c", "d"], asked, Sampling(0.7, 0.95, 8, 3), "s")
    assert found == [trials(1, 3, 3), trials(2, 3, 3), trials(0, 3, 3), trials(0, 0, 3)]
    assert done == [4]


def test_calls_are_small_and_have_seeds_of_their_own() -> None:
    generator = RuleGenerator(lambda prompt, sample: "")
    number = 2 * PROMPTS_PER_CALL + 1
    asked = [question()] * number
    assert len(examiner(generator).ask(["p"] * number, asked, Sampling(0.7, 0.95, 8), "s")) == number
    assert len(set(generator.seeds)) == 3


def test_seeds_are_stable_and_fit_a_torch_generator() -> None:
    assert seed_of("0/grounding/0") == seed_of("0/grounding/0") != seed_of("0/grounding/4")
    assert 0 <= seed_of("x") < 2**63


def test_an_exam_ends_where_its_answers_decide() -> None:
    generator = RuleGenerator(lambda prompt, sample: "Paris" if sample >= int(prompt[-2]) else "Oslo")
    found = examiner(generator).examine([exam("0"), exam("2"), exam("9")])
    assert found == [trials(1, 1, 1), trials(2, 4, 4), trials(0, 8, 8)]
    assert len(generator.samplings) == 4  # 1, 1, 2 and 4 at a time
    assert len(generator.seeds) == len(set(generator.seeds)) == 1 + 4 + 8


def test_exams_that_want_unlike_numbers_share_a_call() -> None:
    generator = RuleGenerator(lambda prompt, sample: "Oslo")
    found = examiner(generator).examine([exam("a", sizes=(1, 2)), exam("b", sizes=(3,))])
    assert found == [trials(0, 3, 3)] * 2
    assert generator.prompts == ["Where is a?", *["Where is b?"] * 3, *["Where is a?"] * 2]
    assert [sampling.samples for sampling in generator.samplings] == [1, 1]


def test_replies_of_another_length_need_another_call() -> None:
    generator = RuleGenerator(lambda prompt, sample: "Oslo")
    long = replace(exam("b"), sampling=Sampling(0.7, 0.95, 99))
    assert examiner(generator).examine([exam("a", sizes=(2,)), long]) == [trials(0, 2, 2), trials(0, 8, 8)]
    assert [sampling.max_new_tokens for sampling in generator.samplings] == [8, 99, 99, 99, 99]


def test_what_is_decided_or_drawn_is_not_asked() -> None:
    generator = RuleGenerator(lambda prompt, sample: "Oslo")
    asked = [exam("a", stop_at=0), exam("b", before=trials(0, 8, 8)), exam("c", sizes=())]
    assert examiner(generator).examine(asked) == [UNTRIED, trials(0, 8, 8), UNTRIED]
    assert examiner(generator).examine([]) == []
    assert generator.prompts == []


def test_a_stopped_exam_goes_on_to_what_a_full_one_gives() -> None:
    """Whatever else is asked beside it, in however many calls: unbiased, it equals the draw that never stopped."""
    names = [str(number) for number in range(40)]
    full = examiner(DiceGenerator()).examine([exam(name, stop_at=9, sizes=(8,)) for name in names])
    early = DiceGenerator()
    stopped = examiner(early).examine([exam(name) for name in names])
    assert [one.correct > 0 for one in stopped] == [one.correct > 0 for one in full]
    assert early.drawn == sum(one.drawn for one in stopped) < 8 * 40
    rest = [
        exam(name, stop_at=9, sizes=(one.drawn, 8 - one.drawn), before=one)
        for name, one in zip(names, stopped, strict=True)
    ]
    assert examiner(early).examine(rest[::-1]) == full[::-1]
    assert early.drawn == 8 * 40
