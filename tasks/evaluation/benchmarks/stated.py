"""What QwenLong's evaluations share: the prompt, and what a reply states as its answer.

Followed: github.com/Tongyi-Zhiwen/QwenLong-L1 at 38d0806, `eval/*.py`, by the group of the paper. Its code for L1.5 is
not public.
"""

from collections.abc import Sequence

from tasks.evaluation.benchmarks.base import Attempt, T, Task
from tasks.records import Verdict
from tasks.rewards.extraction import extract_answer, visible
from tasks.rewards.judge import Judge
from tasks.rewards.judging.purposes import Claim, Purpose
from tasks.rewards.rules import reward_of

FORM = 'Format your response as follows: "Therefore, the answer is (insert answer here)".'
PROMPT = "Please read the following text and answer the question below.\n\n<text>\n{context}\n</text>\n\n{question}\n\n"


def prompt_of(task: Task) -> str:
    """The prompt of QwenLong's evaluations."""
    return PROMPT.format(context=task.context, question=task.question) + FORM


def shown(attempt: Attempt[T]) -> str:
    """What follows the reasoning; "" where a cut reply never ended it."""
    return (visible(attempt.reply, attempt.finish) or "").strip()


def stated(attempt: Attempt[T]) -> str | None:
    """The answer that a reply states."""
    return extract_answer(attempt.reply, attempt.finish)


def claim_of(attempt: Attempt[T], purpose: Purpose) -> Claim | None:
    """What a judge is asked about a reply: its stated answer, or all that follows the reasoning; None for nothing."""
    answer = stated(attempt) or shown(attempt)
    return Claim(attempt.task.question, attempt.task.gold[0], answer, purpose) if answer else None


def judged(claims: Sequence[Claim | None], judge: Judge | None) -> list[float | None]:
    """1 for correct, 0 for wrong and for no claim, None for unscored; all others of a benchmark without a judge."""
    asked = [claim for claim in claims if claim]
    verdicts = iter([Verdict.UNSCORED] * len(asked) if judge is None else judge.judge(asked))
    return [reward_of(next(verdicts)) if claim else 0.0 for claim in claims]
