"""Self-play in the tiny profile's closed language: one small model, asked in prompts that it was taught."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from tasks.corpus.names import mentions
from tasks.generation.base import Completion, Generator, Sampling
from tasks.prompts import Difficulty, Proposal, answer_prompt, join_documents, parse_proposal, propose_prompt
from tasks.records import DocumentKind, Finish, Question, Verdict
from tasks.rewards.judge import LocalJudge
from tasks.rewards.rules import extract_answer
from tasks.synthesis.players import Ask, Round, Try, number_of
from tasks.synthesis.questions import Fact, facts_of, names_of
from tasks.tokenization import ChatTokenizer

KINDS: tuple[DocumentKind, ...] = ("encyclopaedia", "text")
_NAME = re.compile(r"(?<=\s)[A-Z0-9][\w'-]*(?:\s[A-Z0-9][\w'-]*)*")  # not the first word


@dataclass(frozen=True)
class ClosedPlayers:
    """A generator that plays all roles. `sampling` is of one reply; the verifier judges greedily."""

    generator: Generator
    tokenizer: ChatTokenizer
    sampling: Sampling
    prompt_tokens: int

    @property
    def kinds(self) -> Collection[DocumentKind]:
        """Documents of sentences."""
        return KINDS

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return self.tokenizer.count(text)

    def document_tokens(self, text: str) -> int:
        """Tokens of a numbered document and its line break."""
        return self.tokenizer.count(f"{join_documents([text])}\n")

    def solver_tokens(self, attempt: Try) -> int:
        """Tokens of the answer prompt."""
        return self.tokenizer.prompt_length(answer_prompt(attempt.documents, attempt.question))

    def question_kinds(self, turn: Round) -> Sequence[Difficulty]:
        """Only the first round asks for easy questions."""
        return ("easy",) if turn.number == 0 else ("hard",)

    def least_rate(self, turn: Round) -> float:
        """More than half verifies an easy question. At hard ones solvers of one small model share wrong guesses."""
        return 0.5 + 1e-6 if turn.number == 0 else 1.0

    def facts(self, text: str) -> Collection[Fact]:
        """Read in the closed language."""
        return facts_of(text)

    def propose(self, asks: Sequence[Ask], seed: str) -> Iterator[list[Proposal | None]]:
        """Sample as many completions of every prompt as any ask wants, so that all are one batch."""
        most = max((ask.number for ask in asks), default=0)
        prompts = [
            propose_prompt(
                [document.text for document in ask.documents],
                cast(Difficulty, ask.kind),
                [question.question for question in ask.history],
            )
            for ask in asks
        ]
        for ask, group in zip(asks, self._sampled(prompts, most, seed), strict=True):
            yield [
                parse_proposal(reply.text) if reply.finish is Finish.FINISHED else None for reply in group[: ask.number]
            ]

    def fault(self, proposal: Proposal, ask: Ask) -> str:
        """A question names something in its documents; a hard one needs several of them.

        One document has a name of the question, another the answer, and a name links them.
        """
        names = _NAME.findall(proposal.question)
        texts = [document.text for document in ask.documents]
        near = [text for text in texts if any(mentions(text, name) for name in names)]
        if not near:
            return "not about its documents"
        return "" if ask.kind == "easy" else _fault_of_hard(near, [t for t in texts if mentions(t, proposal.answer)])

    def solve(self, attempts: Iterable[Try], seed: str) -> Iterator[str]:
        """The stated answers."""
        prompts = [answer_prompt(attempt.documents, attempt.question) for attempt in attempts]
        for (reply,) in self._sampled(prompts, 1, seed):
            yield extract_answer(reply.text, reply.finish) or ""

    def judge(self, doubts: Sequence[tuple[Question, str]], seed: str) -> Iterator[Verdict]:
        """One greedy vote each."""
        judge = LocalJudge(self.generator, self.tokenizer, replace(self.sampling, temperature=0.0, top_p=1.0))
        questions, answers = [question for question, _ in doubts], [answer for _, answer in doubts]
        yield from judge.judge(questions, answers, number_of(seed))

    def _sampled(self, prompts: Sequence[str], samples: int, seed: str) -> list[list[Completion]]:
        if not prompts:
            return []
        ids = [self.tokenizer.prompt_ids(prompt) for prompt in prompts]
        return self.generator.generate(ids, replace(self.sampling, samples=samples), number_of(seed))


def _fault_of_hard(near: Sequence[str], far: Sequence[str]) -> str:
    if set(near) & set(far):
        return "not hard: one document mentions question and answer"
    if not any(names_of(one) & names_of(other) for one in near for other in far):
        return "not hard: nothing links question and answer"
    return ""
