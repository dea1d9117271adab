"""MASE: one model proposes questions, solves them and judges the answers; agreement verifies a question.

QwenLong-L1.5 §3.2, Fig. 5, with SPELL's history buffer and vote. Nothing here knows the facts: a wrong
proposal falls because the solvers do not agree with it, and the rejections say so. Solvers of one model err
alike; so they read the evidence in different company: a guess changes with it, a read answer does not.
"""

import random
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from tasks.generation.base import Completion, Generator, Sampling
from tasks.prompts import (
    Difficulty,
    Proposal,
    answer_prompt,
    join_documents,
    parse_proposal,
    propose_prompt,
)
from tasks.records import AnswerKind, Document, Domain, Finish, Question, Split, Verdict
from tasks.rewards.judge import LocalJudge
from tasks.rewards.rules import check, extract_answer
from tasks.synthesis.graph import TRIPLE_KINDS
from tasks.synthesis.names import key, mentions
from tasks.synthesis.questions import Harvest, Source, facts_of, names_of
from tasks.tokenization import ChatTokenizer

MAX_ANSWER_WORDS = 40  # SPELL: a gold answer of at most 40 tokens
DOCUMENTS_SHARE = 0.75  # of the context limit is given to documents, the rest to history and question
SHOWN_SHARE = 2 / 3  # of the documents that have joined is shown to the proposer
COMPANY = 12  # random documents tried as company of the evidence
PROPOSALS_PER_QUESTION = 2  # how many proposals are asked for per question wanted
_NAME = re.compile(r"(?<=\s)[A-Z0-9][\w'-]*(?:\s[A-Z0-9][\w'-]*)*")  # not the first word


@dataclass(frozen=True)
class Rules:
    """How the game is played; each role sets the number of samples itself."""

    rounds: int
    history_size: int
    votes: int
    context_tokens: int
    sampling: Sampling
    seed: int


@dataclass(frozen=True)
class Round:
    """One round of the game, `number` counted from 0. Only the first one asks for easy questions."""

    number: int
    of: int

    @property
    def difficulty(self) -> Difficulty:
        """What the proposer is asked for."""
        return "easy" if self.number == 0 else "hard"

    @property
    def joined_share(self) -> float:
        """How much of a table's documents takes part: half at first, all in the last round."""
        return 1.0 if self.of == 1 else 0.5 + 0.5 * self.number / (self.of - 1)


@dataclass(frozen=True)
class Table:
    """A few documents of one cluster at which the roles sit, and the FIFO history of verified questions."""

    documents: tuple[Document, ...]
    history: deque[str]

    def subset(self, turn: Round, rng: random.Random) -> tuple[Document, ...]:
        """A random part, in random order, of the documents that have joined: what the proposer sees."""
        joined = self.documents[: max(1, round(turn.joined_share * len(self.documents)))]
        return tuple(rng.sample(joined, max(1, round(SHOWN_SHARE * len(joined)))))


@dataclass(frozen=True)
class Claim:
    """A proposed question as a record, the table it was asked at, and what the proposer saw."""

    table: Table
    shown: tuple[Document, ...]
    question: Question


class SelfPlay:
    """Plays all tables of a split at once, round by round, so that every role is one batch."""

    def __init__(self, generator: Generator, tokenizer: ChatTokenizer, rules: Rules) -> None:
        """The generator plays all three roles; the verifier judges greedily."""
        self._generator = generator
        self._tokenizer = tokenizer
        self._rules = rules
        self._judge = LocalJudge(generator, tokenizer, replace(rules.sampling, temperature=0.0, top_p=1.0))

    def play(self, documents: Sequence[Document], split: Split, wanted: int) -> Harvest:
        """Return up to `wanted` verified questions about the documents of one split."""
        rules = self._rules
        rng = random.Random(f"{rules.seed} {split} self-play")
        limit = round(DOCUMENTS_SHARE * rules.context_tokens)
        tables = list(seat(documents, limit, self._tokenizer.count, rules.history_size, rng))
        source = Source(Domain.READING_COMPREHENSION, "self_play", split, rules.seed)
        harvest = Harvest()
        for number in range(rules.rounds if tables else 0):
            turn = Round(number, rules.rounds)
            subsets = [table.subset(turn, rng) for table in tables]
            proposed = self._propose(tables, subsets, turn, wanted)
            claims: list[Claim] = []
            for table, subset, replies in zip(tables, subsets, proposed, strict=True):
                sound, rejections = read_claims(table, subset, replies, turn, source)
                claims += sound
                harvest.rejections += rejections
            self._keep_verified(claims, self._votes(claims, documents, turn, rng), harvest)
        harvest.questions = harvest.questions[:wanted]
        return harvest

    def _propose(
        self, tables: Sequence[Table], subsets: Sequence[Sequence[Document]], turn: Round, wanted: int
    ) -> list[list[Completion]]:
        prompts = [
            propose_prompt([document.text for document in subset], turn.difficulty, list(table.history))
            for table, subset in zip(tables, subsets, strict=True)
        ]
        number = -(-PROPOSALS_PER_QUESTION * wanted // (turn.of * len(tables)))
        return self._ask(prompts, number, _seed(self._rules.seed, turn, "propose"))

    def _votes(
        self, claims: Sequence[Claim], documents: Sequence[Document], turn: Round, rng: random.Random
    ) -> list[int]:
        """How many solvers reach each claimed answer; each reads the evidence among other documents."""
        pool = [document for document in documents if document.kind in TRIPLE_KINDS]
        votes = self._rules.votes
        prompts = [self._solver_prompt(claim, pool, rng) for claim in claims for _ in range(votes)]
        replies = self._ask(prompts, 1, _seed(self._rules.seed, turn, "solve"))
        questions = [claim.question for claim in claims for _ in range(votes)]
        pairs = [(question, reply) for question, (reply,) in zip(questions, replies, strict=True)]
        agreed = self._agreements(pairs, _seed(self._rules.seed, turn, "verify"))
        return [sum(agreed[start : start + votes]) for start in range(0, len(agreed), votes)]

    def _solver_prompt(self, claim: Claim, pool: Sequence[Document], rng: random.Random) -> str:
        """The claim's evidence and random documents of the split, up to the context limit, shuffled."""
        count = self._tokenizer.prompt_length
        texts = [document.text for document in claim.shown]
        room = self._rules.context_tokens - count(answer_prompt(texts, claim.question.question))
        for document in rng.sample(pool, min(len(pool), COMPANY)):
            cost = self._tokenizer.count(f"{join_documents([document.text])}\n")
            if cost <= room and document not in claim.shown:
                texts.append(document.text)
                room -= cost
        return answer_prompt(rng.sample(texts, len(texts)), claim.question.question)

    def _agreements(self, pairs: Sequence[tuple[Question, Completion]], seed: int) -> list[bool]:
        """max(rule, judge): the verifier model is asked once about every answer that the rule refuses."""
        agreed: dict[tuple[str, str, str], bool] = {}
        doubtful: dict[tuple[str, str, str], Question] = {}
        keys = []
        for question, reply in pairs:
            answer = extract_answer(reply.text, reply.finish) or ""
            keys.append((question.question, question.gold[0], answer))
            agreed[keys[-1]] = check(reply.text, reply.finish, question) is Verdict.CORRECT
            if not agreed[keys[-1]]:
                doubtful[keys[-1]] = question
        answers = [answer or None for _, _, answer in doubtful]
        verdicts = self._judge.judge(list(doubtful.values()), answers, seed)
        agreed |= {pair: verdict is Verdict.CORRECT for pair, verdict in zip(doubtful, verdicts, strict=True)}
        return [agreed[pair] for pair in keys]

    def _keep_verified(self, claims: Sequence[Claim], votes: Sequence[int], harvest: Harvest) -> None:
        """A claim that enough solvers reach enters the history and the harvest.

        More than half is enough for an easy question. At hard ones the solvers of one small model share wrong
        guesses, so these need every vote.
        """
        known = {question.question for question in harvest.questions}
        for claim, agreeing in zip(claims, votes, strict=True):
            question = claim.question
            hard = question.provenance["wanted_difficulty"] == "hard"
            if agreeing < (self._rules.votes if hard else self._rules.votes // 2 + 1):
                harvest.rejections["too few solvers agree"] += 1
            elif question.question in known:
                harvest.rejections["asked before"] += 1
            else:
                known.add(question.question)
                claim.table.history.append(question.question)
                tally = {**question.provenance, "votes": self._rules.votes, "agreeing": agreeing}
                harvest.questions.append(question.model_copy(update={"provenance": tally}))

    def _ask(self, prompts: Sequence[str], samples: int, seed: int) -> list[list[Completion]]:
        if not prompts:
            return []
        ids = [self._tokenizer.prompt_ids(prompt) for prompt in prompts]
        return self._generator.generate(ids, replace(self._rules.sampling, samples=samples), seed)


def _seed(seed: int, turn: Round, role: str) -> int:
    return random.Random(f"{seed} {turn.number} {role}").getrandbits(31)


def read_claims(
    table: Table, subset: Sequence[Document], replies: Sequence[Completion], turn: Round, source: Source
) -> tuple[list[Claim], Counter[str]]:
    """Parse the proposals of one table; those with a fault or said twice are counted by reason."""
    claims: dict[Proposal, Claim] = {}
    rejections = Counter[str]()
    for reply in replies:
        proposal = parse_proposal(reply.text) if reply.finish is Finish.FINISHED else None
        problem = fault(proposal, subset, turn.difficulty)
        if proposal is None or problem:
            rejections[problem] += 1
        elif proposal in claims:
            rejections["asked before"] += 1
        else:
            claims[proposal] = Claim(table, tuple(subset), _question(source, proposal, subset, turn))
    return list(claims.values()), rejections


def seat(
    documents: Sequence[Document],
    limit: int,
    count: Callable[[str], int],
    history_size: int,
    rng: random.Random,
) -> Iterator[Table]:
    """Cut each cluster into tables of documents that share names and together have at most `limit` tokens.

    A document that alone exceeds the limit is left out: its context would not fit.
    """
    suitable = [one for one in documents if one.kind in TRIPLE_KINDS and _tokens([one], count) <= limit]
    for _, members in groupby(sorted(suitable, key=_by_cluster), key=lambda document: document.cluster):
        waiting = list(members)
        while waiting:
            seated = [waiting.pop(rng.randrange(len(waiting)))]
            while fitting := [one for one in waiting if _tokens([*seated, one], count) <= limit]:
                names = frozenset[str]().union(*(names_of(one.text) for one in seated))
                seated.append(max(fitting, key=lambda one: len(names & names_of(one.text))))
                waiting.remove(seated[-1])
            yield Table(tuple(rng.sample(seated, len(seated))), deque(maxlen=history_size))


def _tokens(documents: Sequence[Document], count: Callable[[str], int]) -> int:
    return count(join_documents([document.text for document in documents]))


def _by_cluster(document: Document) -> tuple[str, str]:
    return document.cluster, document.id


def fault(proposal: Proposal | None, documents: Sequence[Document], difficulty: Difficulty) -> str:
    """Why a proposal is not worth an answer, or "". Whether its answer is right is left to the votes.

    A hard question must need several documents: one with a name of the question, another with the answer,
    and a name that links them.
    """
    if proposal is None:
        return "unreadable proposal"
    if not key(proposal.answer) or len(proposal.answer.split()) > MAX_ANSWER_WORDS:
        return "answer empty or too long"
    names = _NAME.findall(proposal.question)
    if not any(mentions(document.text, name) for document in documents for name in names):
        return "not about its documents"
    if mentions(proposal.question, proposal.answer):
        return "the question gives its answer away"
    return "" if difficulty == "easy" else _fault_of_hard(names, proposal.answer, documents)


def _fault_of_hard(names: Sequence[str], answer: str, documents: Sequence[Document]) -> str:
    texts = [document.text for document in documents]
    near = [text for text in texts if any(mentions(text, name) for name in names)]
    far = [text for text in texts if mentions(text, answer)]
    if set(near) & set(far):
        return "not hard: one document mentions question and answer"
    if not any(names_of(one) & names_of(other) for one in near for other in far):
        return "not hard: nothing links question and answer"
    return ""


def _question(source: Source, proposal: Proposal, documents: Sequence[Document], turn: Round) -> Question:
    """The claim as a record. The solver may need all that the proposer saw, so that is the evidence."""
    facts = set[tuple[str, str]]().union(*(facts_of(document.text) for document in documents))
    return source.question(
        proposal.question,
        proposal.answer,
        kind=AnswerKind.NUMBER if proposal.answer.isdecimal() else AnswerKind.TEXT,
        evidence=sorted(document.id for document in documents),
        difficulty=1 if turn.difficulty == "easy" else 2,
        facts=sorted(facts),
        provenance={"kind": "self-play", "round": turn.number + 1, "wanted_difficulty": turn.difficulty},
    )
