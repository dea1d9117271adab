"""Self-play by a writer model on documents in any language: prompts in words, replies as JSON."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from pydantic import BaseModel

from tasks.corpus.names import key
from tasks.generation.base import Sampling
from tasks.generation.chat import ChatModel, Request, Unanswered
from tasks.generation.fencing import fenced
from tasks.generation.structured import UNANSWERED, Refused, ask
from tasks.prompts import Proposal
from tasks.records import DocumentKind, Question, Verdict
from tasks.synthesis.players import Answer, Ask, Round, Try, number_of
from tasks.synthesis.questions import Fact

QUESTION_KINDS = {  # QwenLong-L1.5 §3.2 gives the proposer a question type; the list is unpublished, this one is ours
    "fact": "asks for one fact that takes careful reading to find",
    "comparison": "compares two or more things that the documents describe",
    "temporal": "rests on the order of events, a date, or how long something took",
    "causal": "asks for what led to something, or what followed from it",
    "hypothetical": "supposes that one stated fact were different and asks what would follow from the documents",
    "aggregation": "counts, adds up or ranks things that stand in several documents",
}
UNKNOWN = "unknown"  # what a solver says who cannot tell
TEMPLATE_TOKENS = 64  # a chat template and its system prompt, which `count` does not see
LEAST_RATE = 0.01  # SPELL's window of solve rates is [0.01, 1]: someone must reach the proposer's answer
_POINTING = re.compile(  # a number, or the mark of a fence, points as well
    r"\b(?:(?:the|this|these|above|following|provided|given)\s+(?:documents?|passages?|texts?|excerpts?|contexts?)"
    r"|documents?\s+(?:\d+|[0-9a-f]{8}))\b",
    re.IGNORECASE,
)


class Proposed(BaseModel):
    """A proposer's reply."""

    question: str
    answer: str


class Solved(BaseModel):
    """A solver's reply."""

    answer: str


class Judged(BaseModel):
    """A verifier's reply."""

    same: bool


@dataclass(frozen=True)
class ModelPlayers:
    """A model that plays all roles; proposer and solver sample, the verifier judges greedily."""

    model: ChatModel
    temperature: float
    top_p: float

    @property
    def kinds(self) -> Collection[DocumentKind]:
        """Whatever is text."""
        return get_args(DocumentKind)

    @property
    def prompt_tokens(self) -> int:
        """The context without the reply and the chat template."""
        return self.model.context_tokens - self.model.max_output_tokens - TEMPLATE_TOKENS

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return self.model.count(text)

    def document_tokens(self, text: str) -> int:
        """Tokens of a document within its fence."""
        return self.model.count(_shown([text]))

    def solver_tokens(self, attempt: Try) -> int:
        """Tokens of the solver's prompt."""
        return self.model.count(solver_prompt(attempt))

    def question_kinds(self, turn: Round) -> Sequence[str]:  # noqa: ARG002  the same in all rounds
        """All kinds, in turn."""
        return tuple(QUESTION_KINDS)

    def least_rate(self, turn: Round) -> float:  # noqa: ARG002
        """Of all rounds."""
        return LEAST_RATE

    def facts(self, text: str) -> Collection[Fact]:  # noqa: ARG002
        """Unknown without reading."""
        return ()

    def propose(self, asks: Sequence[Ask], seed: str) -> Iterator[list[Proposal | None]]:
        """One request a proposal."""
        prompts = ((self._fitting(one), number) for one in asks for number in range(one.number))
        replies = ask(self.model, (self._sampled(*prompt, seed) for prompt in prompts), Proposed)
        for one in asks:
            yield [_proposal(next(replies)) for _ in range(one.number)]

    def fault(self, proposal: Proposal, ask: Ask) -> str:  # noqa: ARG002
        """Among other documents, nobody knows which one "the document" is. "unknown" is what solvers abstain with."""
        if key(proposal.answer) == UNKNOWN:
            return "no answer"
        return "points at a document instead of naming its matter" if _POINTING.search(proposal.question) else ""

    def solve(self, attempts: Iterable[Try], seed: str) -> Iterator[Answer]:
        """One request an attempt; attempts of one question have different seeds."""
        requests = (self._sampled(solver_prompt(one), number, seed) for number, one in enumerate(attempts))
        for reply in ask(self.model, requests, Solved):
            yield _answer(reply)

    def judge(self, doubts: Sequence[tuple[Question, str]], seed: str) -> Iterator[Verdict]:  # noqa: ARG002  greedy
        """One request a doubt."""
        greedy = Sampling(0.0, 1.0, self.model.max_output_tokens)
        requests = (Request(judge_prompt(question, answer), greedy) for question, answer in doubts)
        for reply in ask(self.model, requests, Judged):
            yield _verdict(reply)

    def _fitting(self, wanted: Ask) -> str:
        """The prompt with as many of the latest questions of the history as fit."""
        while wanted.history and self.model.count(proposer_prompt(wanted)) > self.prompt_tokens:
            wanted = replace(wanted, history=wanted.history[1:])
        return proposer_prompt(wanted)

    def _sampled(self, prompt: str, number: int, seed: str) -> Request:
        sampling = Sampling(self.temperature, self.top_p, self.model.max_output_tokens)
        return Request(prompt, sampling, number_of(f"{seed} {number}"))


def proposer_prompt(ask: Ask) -> str:
    """Documents, a question's kind, and what is to be surpassed."""
    several = " It must take more than one of the documents to answer it." if len(ask.documents) > 1 else ""
    earlier = "\n".join(f"- {one.question} ({', '.join(one.gold)})" for one in ask.history)
    surpass = (
        "These questions were asked before; yours must be about something else and harder, "
        f"with more steps between question and answer:\n{fenced(earlier, 'questions')}\n"
        if earlier
        else ""
    )
    return (
        f"{_shown([document.text for document in ask.documents])}\n"
        f"{surpass}"
        f"Write one {ask.kind} question about these documents: one that {QUESTION_KINDS[ask.kind]}.{several} "
        "Name what it is about, so that it is understood without the documents in sight; never write "
        '"the document" or "the text". It must have exactly one right answer, which follows from the documents alone, '
        "cannot be guessed, and does not stand in the question. Give the answer in as few words as possible."
    )


def solver_prompt(attempt: Try) -> str:
    """A question with documents, or alone."""
    rules = "Answer in as few words as possible."
    if not attempt.documents:
        return f'Question: {attempt.question}\n{rules} If you do not know it for certain, answer "{UNKNOWN}".'
    return (
        f"{_shown(attempt.documents)}\nQuestion: {attempt.question}\n"
        f'Answer from these documents alone. {rules} If they do not say it, answer "{UNKNOWN}".'
    )


def judge_prompt(question: Question, answer: str) -> str:
    """Two answers to one question."""
    return (
        f"Question: {question.question}\nReference answer: {', '.join(question.gold)}\n"
        f"{fenced(answer, 'answer')}\nDoes the answer say the same as the reference answer, as far as the question "
        "asks? Other words, formats and roundings are the same; anything missing, added or different is not."
    )


def _shown(texts: Sequence[str]) -> str:
    return "\n".join(fenced(text, "document") for text in texts)


def _proposal(reply: Proposed | Refused) -> Proposal | None:
    return None if isinstance(reply, Refused) else Proposal(reply.question.strip(), reply.answer.strip())


def _answer(reply: Solved | Refused) -> Answer:
    if isinstance(reply, Refused):
        return Unanswered(reply.detail) if reply.reason == UNANSWERED else ""
    return "" if key(reply.answer) == UNKNOWN else reply.answer.strip()


def _verdict(reply: Judged | Refused) -> Verdict:
    if isinstance(reply, Refused):
        return Verdict.UNSCORED
    return Verdict.CORRECT if reply.same else Verdict.WRONG
