"""Models as judges, for answers that a rule cannot compare."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from tasks.generation.base import Completion, Generator, Sampling
from tasks.generation.chat import ChatModel, Metered, Unanswered
from tasks.prompts import judge_prompt, parse_verdict
from tasks.records import Finish, Question, Verdict
from tasks.rewards.judging.asking import Inquiry, ask, fits
from tasks.rewards.judging.content import says_something
from tasks.rewards.judging.purposes import Claim, prompt_of
from tasks.rewards.judging.rulings import Ruling
from tasks.rewards.judging.tally import Tally
from tasks.rewards.normalise import normalise
from tasks.tokenization import ChatTokenizer

WINDOW = 1024  # answers judged together; the paper's batch

_VERDICTS: Mapping[Ruling | Unanswered, Verdict] = {
    Ruling.CORRECT: Verdict.CORRECT,
    Ruling.INCORRECT: Verdict.WRONG,
}


class Judge:
    """A chat model as judge. An outage, and a reply without a verdict when asked twice, are unscored, never wrong.

    What it asks at temperature 0 is asked once where the model is `Remembered`; retries, rate limits and the budget
    are the endpoint's. Safe from several threads where the model is.
    """

    def __init__(self, model: ChatModel, alarm_share: float) -> None:
        """Warns when more than `alarm_share` of the answers go unscored."""
        self._model = model
        self.tally = Tally(alarm_share)

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """Verdicts in order, drawing a window of claims at a time.

        An answer without content is wrong unasked, and so is one too long to be shown: that would be the judge's
        silence on demand. A question and reference that do not fit by themselves are unscored.

        Raises:
            PipelineError: the model's server refuses every request, or the budget does not suffice.
        """
        coming = iter(claims)
        while window := list(islice(coming, WINDOW)):
            yield from self._judged(window)

    def ask(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Verdicts of the model itself, whatever the answers are."""
        outcomes = ask(self._model, [Inquiry(prompt_of(claim), claim.purpose.form) for claim in claims], self.tally)
        return [self._verdict(outcome) for outcome in outcomes]

    def counts(self) -> Mapping[str, float]:
        """Answers asked about, replies that came from memory, and what became of them, ready to be logged."""
        model = self._model.counts() if isinstance(self._model, Metered) else {}
        return {**self.tally.counts(), "cached": model.get("remembered", 0)}

    def _judged(self, claims: Sequence[Claim]) -> Iterator[Verdict]:
        settled = [self._unasked(claim) for claim in claims]
        asked = [claim for claim, verdict in zip(claims, settled, strict=True) if verdict is None]
        verdicts = iter(self.ask(asked))
        for verdict in settled:
            yield verdict or next(verdicts)

    def _unasked(self, claim: Claim) -> Verdict | None:
        if says_something(claim.answer, claim.reference):
            if fits(self._model, prompt_of(claim)):
                return None
            if not fits(self._model, prompt_of(Claim(claim.question, claim.reference, "", claim.purpose))):
                self.tally.unscored("question and reference exceed the judge's context")
                return Verdict.UNSCORED
        self.tally.add("refused_unasked")
        return Verdict.WRONG

    def _verdict(self, outcome: Ruling | Unanswered) -> Verdict:
        verdict = _VERDICTS.get(outcome, Verdict.UNSCORED)
        if verdict is Verdict.UNSCORED:
            self.tally.unscored(outcome.reason if isinstance(outcome, Unanswered) else "no verdict in its reply")
        return verdict


class LocalJudge:
    """The tiny model as judge, in the closed language: asked several times, more than half of the votes decide.

    No majority, an unreadable or cut vote and an unreachable generator are unscored, never wrong: an outage
    must not punish the policy. An answer without content is wrong unasked.
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
