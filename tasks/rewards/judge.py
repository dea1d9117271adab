"""A model as judge of equivalence: for answers that a rule cannot compare."""

from collections import Counter
from collections.abc import Sequence

from tasks.generation.base import Completion, Generator, Sampling
from tasks.prompts import judge_prompt, parse_verdict
from tasks.records import Finish, Question, Verdict
from tasks.rewards.normalise import normalise
from tasks.tokenization import ChatTokenizer


class LocalJudge:
    """Asks a generator several times whether an answer equals the gold one; more than half the votes decide.

    No majority, an unreadable or cut vote and an unreachable generator are unscored, never wrong: an outage
    must not punish the policy. An answer without content is wrong unasked: generative judges approve of a
    bare ":" or a reasoning opener (arXiv 2507.08794), so only an extracted answer may reach them.
    """

    def __init__(self, generator: Generator, tokenizer: ChatTokenizer, sampling: Sampling) -> None:
        """`sampling.samples` is the number of votes."""
        self._generator = generator
        self._tokenizer = tokenizer
        self._sampling = sampling

    def judge(self, questions: Sequence[Question], answers: Sequence[str | None], seed: int) -> list[Verdict]:
        """Return one verdict per question and its answer as `rules.extract_answer` gave it."""
        asked = [index for index, answer in enumerate(answers) if answer is not None and normalise(answer)]
        prompts = [self._prompt(questions[index], answers[index] or "") for index in asked]
        verdicts = [Verdict.WRONG] * len(answers)
        for index, verdict in zip(asked, self._ask(prompts, seed), strict=True):
            verdicts[index] = verdict
        return verdicts

    def _prompt(self, question: Question, answer: str) -> list[int]:
        return self._tokenizer.prompt_ids(judge_prompt(question.question, ", ".join(question.gold), answer))

    def _ask(self, prompts: Sequence[Sequence[int]], seed: int) -> list[Verdict]:
        if not prompts:
            return []
        try:
            groups = self._generator.generate(prompts, self._sampling, seed)
        except OSError:  # connection refused, reset or timed out
            return [Verdict.UNSCORED] * len(prompts)
        return [majority([_vote(completion) for completion in group]) for group in groups]


def majority(votes: Sequence[Verdict]) -> Verdict:
    """The verdict of more than half of all votes, abstentions counted; otherwise unscored."""
    verdict, count = Counter(votes).most_common(1)[0] if votes else (Verdict.UNSCORED, 0)
    return verdict if 2 * count > len(votes) else Verdict.UNSCORED


def _vote(completion: Completion) -> Verdict:
    return parse_verdict(completion.text) if completion.finish is Finish.FINISHED else Verdict.UNSCORED
