"""Held-out answers get the verdict of rule and judge; an outage leaves them unscored."""

from tasks.evaluation.answering import Reader, answer, prompt_of
from tasks.generation.base import Completion
from tasks.generation.chat import Unanswered
from tasks.generation.scripted import ScriptedChat, ScriptedGenerator
from tasks.params import Params
from tasks.progress import meter
from tasks.records import Finish, Verdict
from tasks.rewards.judge import Judge
from tests.rewards.judges import Script, approving
from tests.rl.tiny import tiny_items, tiny_tokenizer

SAID = ("The answer is red.", "The answer is crimson.", "red", "It is hard to say.", "The answer is red and")


def verdicts(params: Params, judge: Judge | None) -> list[tuple[Verdict, bool]]:
    tokenizer, item = tiny_tokenizer(), tiny_items(1)[0]  # gold: red
    finishes = (Finish.FINISHED,) * 4 + (Finish.TRUNCATED,)
    completions = [Completion((7,), text, finish) for text, finish in zip(SAID, finishes, strict=True)]
    with meter("test", 1) as progress:
        reader = Reader("base", ScriptedGenerator(completions), tokenizer, params, progress, judge)
        sampling = reader.sampled.__class__(0.7, 0.95, 8, samples=len(SAID))
        replies = answer(reader, [prompt_of(item, 64, tokenizer)], "sampled", sampling)
    return [(reply.verdict, reply.extracted) for reply in replies]


def test_without_a_judge_other_words_are_wrong(params: Params) -> None:
    C, W = Verdict.CORRECT, Verdict.WRONG
    assert verdicts(params, None) == [(C, True), (W, True), (C, False), (W, False), (W, False)]


def test_a_judge_decides_about_other_words_alone(params: Params) -> None:
    judge = Judge(ScriptedChat(approving), 1.0)
    C, W = Verdict.CORRECT, Verdict.WRONG
    assert verdicts(params, judge) == [(C, True), (C, True), (C, False), (W, False), (W, False)]
    assert judge.counts()["asked"] == 1


def test_its_outage_is_no_verdict(params: Params) -> None:
    out: Script = lambda request: Unanswered("503")  # type: ignore[assignment,return-value]  # noqa: E731
    assert verdicts(params, Judge(ScriptedChat(out), 1.0))[1] == (Verdict.UNSCORED, True)
