"""MASE: proposers ask about a few documents, solvers answer, a verifier compares; agreement verifies a question.

QwenLong-L1.5 §3.2, Fig. 5, with SPELL's history buffer, solve rates and guards. Nothing here knows the facts: a wrong
proposal falls because solvers do not reach its answer, and the rejections say so. Over the rounds documents join,
the history shows what is to be surpassed, and the kinds of question rotate. Who plays is behind `Players`.
"""

import random
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from statistics import fmean

from tasks.corpus.library import Library
from tasks.corpus.names import key, mentions, words
from tasks.errors import BudgetError
from tasks.prompts import Proposal
from tasks.records import AnswerKind, Document, Domain, Question, Split
from tasks.rewards.numbers import parse_number
from tasks.synthesis.players import Ask, Players, Round, Try
from tasks.synthesis.questions import Harvest, Source
from tasks.synthesis.seating import seat
from tasks.synthesis.voting import Votes, count_votes, worth

DOCUMENTS_SHARE = 0.75  # of a prompt is given to a table's documents, the rest to history and question
SHOWN_SHARE = 2 / 3  # of the documents that have joined is shown to the proposer
COMPANY = 12  # random documents tried as company of the evidence
PROPOSALS_PER_QUESTION = 2  # the most proposals that a game asks for, per question wanted
WAVE = 128  # tables that play at a time: bounds memory, and what a spent budget takes along
LENGTHS_KEPT = 65_536
_BARE_NUMBER = re.compile(r"[+-]?\d[\d,.]*\s?%?")


@dataclass(frozen=True)
class Rules:
    """How the game is played.

    `votes`: solvers a question. `blind_votes`: solvers without documents, 0 where verification asks the same model.
    """

    rounds: int
    history_size: int
    votes: int
    blind_votes: int
    max_answer_tokens: int
    seed: int


@dataclass(frozen=True)
class RoundRecord:
    """What a round came to; a mean of nothing is None.

    `mean_solve_rate` is over the well-formed proposals that solvers answered, wrong ones included;
    `mean_verified_rate` over those that were verified.
    """

    round: int
    proposed: int
    well_formed: int
    verified: int
    mean_solve_rate: float | None
    mean_verified_rate: float | None
    mean_answer_words: float | None


@dataclass(frozen=True)
class Play:
    """What a game gave: questions and rejections, a record a round, and whether the budget ended it."""

    harvest: Harvest
    rounds: tuple[RoundRecord, ...]
    out_of_budget: bool


@dataclass(frozen=True)
class Table:
    """Ids of documents in the order in which they join, and the FIFO history of verified questions."""

    documents: tuple[str, ...]
    history: deque[Question]


@dataclass(frozen=True)
class Claim:
    """A proposed question as a record, the table it was asked at, and what the proposer saw."""

    table: Table
    shown: tuple[Document, ...]
    question: Question


@dataclass
class _Tally:
    """A round while it is played."""

    turn: Round
    proposed: int = 0
    answer_words: list[int] = field(default_factory=list)  # of well-formed proposals
    rates: list[float] = field(default_factory=list)
    verified_rates: list[float] = field(default_factory=list)

    def record(self) -> RoundRecord:
        return RoundRecord(
            round=self.turn.number + 1,
            proposed=self.proposed,
            well_formed=len(self.answer_words),
            verified=len(self.verified_rates),
            mean_solve_rate=_mean(self.rates),
            mean_verified_rate=_mean(self.verified_rates),
            mean_answer_words=_mean(self.answer_words),
        )


def play(players: Players, library: Library, split: Split, wanted: int, rules: Rules) -> Play:
    """Play about the documents of one split until the rounds are over or the players' budget is spent.

    Up to `wanted` verified questions come back; if there are more, those whose solve rate is worth most. A budget
    that is spent ends the game and keeps what was verified before.
    """
    game = _Game(players, library, split, wanted, rules)
    tallies: list[_Tally] = []
    spent = False
    try:
        for number in range(rules.rounds if game.tables else 0):
            tallies.append(_Tally(Round(number, rules.rounds)))
            game.play_round(tallies[-1])
    except BudgetError:
        spent = True
    harvest = Harvest(best(game.harvest.questions, wanted), game.harvest.rejections)
    return Play(harvest, tuple(tally.record() for tally in tallies), spent)


def best(questions: Sequence[Question], wanted: int) -> list[Question]:
    """The questions of most worth in their old order; among equals the earlier ones."""
    order = sorted(range(len(questions)), key=lambda index: -worth(questions[index].provenance["solve_rate"]))
    return [questions[index] for index in sorted(order[:wanted])]


class _Game:
    """The state of a game: tables with their histories, and what was verified so far."""

    def __init__(self, players: Players, library: Library, split: Split, wanted: int, rules: Rules) -> None:
        self._players = players
        self._library = library
        self._rules = rules
        self._source = Source(Domain.READING_COMPREHENSION, "self_play", split, rules.seed)
        self._rng = random.Random(f"{rules.seed} {split} self-play")
        self._length = lru_cache(LENGTHS_KEPT)(lambda name: players.document_tokens(library[name].text))
        self._names = [document.id for document in library.stream(split) if document.kind in players.kinds]
        self._proposals = max(1, PROPOSALS_PER_QUESTION * wanted // rules.rounds)  # of a round
        limit = round(DOCUMENTS_SHARE * players.prompt_tokens)
        seated = seat(self._names, library, split, limit, self._length, self._rng)
        self.tables = [Table(names, deque(maxlen=rules.history_size)) for names in islice(seated, self._proposals)]
        self.harvest = Harvest()
        self._claimed: set[tuple[str, str]] = set()
        self._verified: set[str] = set()

    def play_round(self, tally: _Tally) -> None:
        """Play a round, a wave of tables after the other, so that every role is asked in batches."""
        for start in range(0, len(self.tables), WAVE):
            seed = f"{self._rules.seed} {self._source.split} {tally.turn.number} {start}"
            claims = self._claims(list(self._asks(start, tally.turn)), tally, seed)
            self._keep_verified(claims, self._votes(claims, seed), tally, seed)

    def _asks(self, start: int, turn: Round) -> Iterator[tuple[Table, Ask]]:
        """What the tables of a wave are asked for; the kinds rotate over tables and rounds."""
        kinds = self._players.question_kinds(turn)
        share, rest = divmod(self._proposals, len(self.tables))
        for place, table in enumerate(self.tables[start : start + WAVE], start):
            shown = self._subset(table, turn)
            numbers = range(share + (place < rest))
            for kind, number in Counter(kinds[(place + turn.number + one) % len(kinds)] for one in numbers).items():
                yield table, Ask(shown, tuple(table.history), turn, kind, number)

    def _subset(self, table: Table, turn: Round) -> tuple[Document, ...]:
        """A random part, in random order, of the documents that have joined: what the proposer sees."""
        joined = table.documents[: max(1, round(turn.joined_share * len(table.documents)))]
        shown = self._rng.sample(joined, max(1, round(SHOWN_SHARE * len(joined))))
        return tuple(self._library[name] for name in shown)

    def _claims(self, asks: Sequence[tuple[Table, Ask]], tally: _Tally, seed: str) -> list[Claim]:
        """The sound proposals; the others are counted by reason."""
        claims: list[Claim] = []
        replies = self._players.propose([ask for _, ask in asks], f"{seed} propose")
        for (table, ask), proposals in zip(asks, replies, strict=True):
            for proposal in proposals:
                tally.proposed += 1
                if self._rejects(self._fault(proposal, ask)) or proposal is None:
                    continue
                self._claimed.add((key(proposal.question), key(proposal.answer)))
                tally.answer_words.append(len(proposal.answer.split()))
                claims.append(Claim(table, ask.documents, self._question(proposal, ask)))
        return claims

    def _rejects(self, problem: str) -> bool:
        """Count a reason, if there is one."""
        if problem:
            self.harvest.rejections[problem] += 1
        return bool(problem)

    def _fault(self, proposal: Proposal | None, ask: Ask) -> str:
        """Why a proposal is not worth an answer, or "". Whether its answer is right is left to the votes."""
        if proposal is None:
            return "unreadable proposal"
        question, answer = key(proposal.question), key(proposal.answer)
        if not words(answer).strip() or self._players.count(proposal.answer) > self._rules.max_answer_tokens:
            return "answer empty or too long"
        if mentions(proposal.question, proposal.answer):
            return "the question gives its answer away"
        if question in self._verified or (question, answer) in self._claimed:
            return "asked before"
        return self._players.fault(proposal, ask)

    def _question(self, proposal: Proposal, ask: Ask) -> Question:
        """The claim as a record. The solver may need all that the proposer saw, so that is the evidence."""
        facts = {fact for document in ask.documents for fact in self._players.facts(document.text)}
        return self._source.question(
            proposal.question,
            proposal.answer,
            kind=_answer_kind(proposal.answer),
            evidence=sorted(document.id for document in ask.documents),
            difficulty=ask.turn.number + 1,
            facts=sorted(facts),
            provenance={"kind": "self-play", "round": ask.turn.number + 1, "asked_for": ask.kind},
        )

    def _votes(self, claims: Sequence[Claim], seed: str) -> list[Votes]:
        attempts = (attempt for claim in claims for attempt in self._attempts(claim))
        answers = list(self._players.solve(attempts, f"{seed} solve"))
        questions = [claim.question for claim in claims]
        return count_votes(questions, answers, lambda doubts: self._players.judge(doubts, f"{seed} judge"))

    def _attempts(self, claim: Claim) -> Iterator[Try]:
        """Every solver reads the evidence in other company: a guess changes with it, a read answer does not."""
        evidence, question = [document.text for document in claim.shown], claim.question.question
        left = self._players.prompt_tokens - self._players.solver_tokens(Try(tuple(evidence), question))
        for _ in range(self._rules.votes):
            texts, room = list(evidence), left
            for name in self._company(claim):
                if self._length(name) <= room:
                    texts.append(self._library[name].text)
                    room -= self._length(name)
            yield Try(tuple(self._rng.sample(texts, len(texts))), question)

    def _company(self, claim: Claim) -> list[str]:
        """The table's other documents and random ones of the split, shuffled."""
        strangers = self._rng.sample(self._names, min(len(self._names), COMPANY))
        others = sorted({*claim.table.documents, *strangers} - set(claim.question.document_ids))
        return self._rng.sample(others, len(others))

    def _blind_votes(self, claims: Sequence[Claim], seed: str) -> list[Votes]:
        """Votes without documents. They also unmask a verifier that agrees with everything."""
        if not self._rules.blind_votes:
            return [Votes()] * len(claims)
        questions = [claim.question for claim in claims]
        attempts = [Try((), question.question) for question in questions for _ in range(self._rules.blind_votes)]
        answers = list(self._players.solve(attempts, f"{seed} solve blindly"))
        return count_votes(questions, answers, lambda doubts: self._players.judge(doubts, f"{seed} judge blind"))

    def _keep_verified(self, claims: Sequence[Claim], votes: Sequence[Votes], tally: _Tally, seed: str) -> None:
        """Claims that enough solvers reach, and not without documents, enter harvest and history."""
        least = self._players.least_rate(tally.turn)
        tally.rates += [cast.rate for cast in votes if cast.scored]
        standing = [pair for pair in zip(claims, votes, strict=True) if not self._rejects(pair[1].fault(least))]
        blind = self._blind_votes([claim for claim, _ in standing], seed)
        grounded = [pair for pair, guess in zip(standing, blind, strict=True) if not self._rejects(guess.blind_fault())]
        for claim, cast in sorted(grounded, key=lambda pair: worth(pair[1].rate)):  # the best stay longest in history
            asked = key(claim.question.question)
            if not self._rejects("asked before" if asked in self._verified else ""):
                self._verified.add(asked)
                tally.verified_rates.append(cast.rate)
                self._keep(claim, cast)

    def _keep(self, claim: Claim, cast: Votes) -> None:
        known = {"votes": cast.cast, "agreeing": cast.agreeing, "solve_rate": cast.rate}
        question = claim.question.model_copy(update={"provenance": {**claim.question.provenance, **known}})
        claim.table.history.append(question)
        self.harvest.questions.append(question)


def _answer_kind(answer: str) -> AnswerKind:
    """A bare number is compared as one; with a unit, "30 June" would be one too."""
    return AnswerKind.NUMBER if _BARE_NUMBER.fullmatch(answer) and parse_number(answer) else AnswerKind.TEXT


def _mean(numbers: Sequence[float]) -> float | None:
    return fmean(numbers) if numbers else None
