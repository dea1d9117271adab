"""From replies to scores: cells by domain and length, checkpoints in pairs, memory agent beside truncation."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from tasks.evaluation.metrics import (
    SCORE,
    Floats,
    Integers,
    average_at_k,
    holm,
    majority,
    mcnemar,
    paired_bootstrap,
    pass_at_k_of,
    share,
    stratified_mean,
)
from tasks.evaluation.scores import Cell, CheckpointScores, Comparison, Interval, LongScores, Mode, Reply
from tasks.records import Domain, Finish, Item, Verdict
from tasks.rewards.extraction import extract_answer
from tasks.rewards.normalise import normalise

Key = tuple[str, int]  # question id, context tokens: one evaluated context
CellKey = tuple[Domain | None, int | None]  # domain, context tokens; None takes all


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are drawn. Every cell starts from the same seed: its interval depends on no other."""

    resamples: int
    seed: int

    def gain(self, base_N: Floats, model_N: Floats, items: Sequence[Item]) -> Interval | None:
        """Model − base over the same items, each length counting the same."""
        rng = np.random.default_rng(self.seed)
        return paired_bootstrap(base_N, model_N, _lengths_N(items), self.resamples, rng)


@dataclass(frozen=True)
class Table:
    """Replies of all checkpoints to the same items."""

    items: Sequence[Item]
    guesses: Mapping[Key, float]
    replies: Mapping[tuple[str, Mode, Key], Sequence[Reply]]

    def replies_to(self, items: Sequence[Item], checkpoint: str, mode: Mode) -> list[Sequence[Reply]]:
        """Replies per item, in order."""
        return [self.replies[checkpoint, mode, key_of(item)] for item in items]

    def scores_NK(self, items: Sequence[Item], checkpoint: str, mode: Mode) -> Floats:
        """Scores per item and sample."""
        rows = self.replies_to(items, checkpoint, mode)
        return np.array([[SCORE[reply.verdict] for reply in row] for row in rows], dtype=np.float64)

    def sampled(self, items: Sequence[Item], checkpoint: str) -> list[Reply]:
        """All sampled replies to some items."""
        return [reply for row in self.replies_to(items, checkpoint, "sampled") for reply in row]

    def generated_tokens(self, checkpoint: str) -> int:
        """All tokens a checkpoint sampled, in any mode, to items of this table or not."""
        rows = (row for (name, _, _), row in self.replies.items() if name == checkpoint)
        return sum(reply.response_tokens for row in rows for reply in row)

    def select(self, domain: Domain | None, context_tokens: int | None) -> list[Item]:
        """Items of a cell; None takes all."""
        return [
            item
            for item in self.items
            if domain in (None, item.question.domain) and context_tokens in (None, item.length_bucket)
        ]

    def cells(self) -> list[CellKey]:
        """All cells that hold items, margins included, the whole first."""
        domains = sorted({item.question.domain for item in self.items})
        lengths = sorted({item.length_bucket for item in self.items})
        return [cell for cell in product([None, *domains], [None, *lengths]) if self.select(*cell)]

    def guess(self, items: Sequence[Item]) -> float:
        """Expected score of the best answer without reading, each length counting the same."""
        rates_N = np.array([self.guesses[key_of(item)] for item in items], dtype=np.float64)
        return _mean(rates_N, items) or 0.0


def key_of(item: Item) -> Key:
    """What tells evaluated contexts apart."""
    return item.question.id, item.length_bucket


def table_of(items: Sequence[Item], replies: Iterable[Reply], guesses: Mapping[Key, float]) -> Table:
    """Sort replies under their items; replies to other items are left out by never being looked up."""
    sorted_replies: dict[tuple[str, Mode, Key], list[Reply]] = defaultdict(list)
    for reply in replies:
        sorted_replies[reply.checkpoint, reply.mode, (reply.question_id, reply.context_tokens)].append(reply)
    return Table(items, guesses, dict(sorted_replies))


def score_checkpoint(table: Table, checkpoint: str, base: str, bootstrap: Bootstrap) -> CheckpointScores:
    """All cells of one checkpoint, and what its replies took."""
    sampled = table.sampled(table.items, checkpoint)
    return CheckpointScores(
        checkpoint=checkpoint,
        cells=tuple(_cell(table, checkpoint, base, cell, bootstrap) for cell in table.cells()),
        longest_reply=max((reply.response_tokens for reply in sampled), default=0),
        generated_tokens=table.generated_tokens(checkpoint),
        thinking_share=share(["</think>" in reply.text for reply in sampled]),
        cut_share=share([reply.cut for reply in sampled]),
    )


def _cell(table: Table, checkpoint: str, base: str, cell: CellKey, bootstrap: Bootstrap) -> Cell:
    items = table.select(*cell)
    sampled = table.sampled(items, checkpoint)
    scores_NK = table.scores_NK(items, checkpoint, "sampled")
    average_N = average_at_k(scores_NK)
    base_N = average_at_k(table.scores_NK(items, base, "sampled"))
    return Cell(
        domain=cell[0],
        context_tokens=cell[1],
        questions=len(items),
        guess=table.guess(items),
        greedy=_mean(table.scores_NK(items, checkpoint, "greedy")[:, 0], items),
        first=_mean(scores_NK[:, 0], items),
        average=_mean(average_N, items),
        pass_at_k=_mean(pass_at_k_of(scores_NK, scores_NK.shape[1]), items),
        majority=_mean(_majorities_N(table.replies_to(items, checkpoint, "sampled")), items),
        gain=None if checkpoint == base else bootstrap.gain(base_N, average_N, items),
        response_tokens=sum(reply.response_tokens for reply in sampled) / len(sampled),
        truncated_share=share([reply.finish is Finish.TRUNCATED for reply in sampled]),
        unanswered_share=share([not reply.extracted for reply in sampled]),
        unscored_share=share([reply.verdict is Verdict.UNSCORED for reply in sampled]),
    )


def _majorities_N(rows: Sequence[Sequence[Reply]]) -> Floats:
    return np.array([majority([*map(_vote, row)], [SCORE[reply.verdict] for reply in row]) for row in rows])


def _vote(reply: Reply) -> str | None:
    """The stated answer in normal form; replies in equal words vote together."""
    answer = extract_answer(reply.text, reply.finish)
    return None if answer is None else normalise(answer) or answer


def compare(table: Table, checkpoints: Sequence[str], bootstrap: Bootstrap) -> tuple[Comparison, ...]:
    """Each checkpoint with the one before it, then with the first; p-values corrected over all of these."""
    pairs = dict.fromkeys([*pairwise(checkpoints), *((checkpoints[0], name) for name in checkpoints[1:])])
    found = [_comparison(table, first, second, bootstrap) for first, second in pairs]
    adjusted = iter(holm([one.p for one in found if one.p is not None]))
    return tuple(one if one.p is None else one.model_copy(update={"adjusted_p": next(adjusted)}) for one in found)


def _comparison(table: Table, first: str, second: str, bootstrap: Bootstrap) -> Comparison:
    first_N, second_N = (table.scores_NK(table.items, name, "greedy")[:, 0] for name in (first, second))
    both_N = np.isfinite(first_N) & np.isfinite(second_N)
    only_first = int((both_N & (first_N > second_N)).sum())
    only_second = int((both_N & (second_N > first_N)).sum())
    return Comparison(
        first=first,
        second=second,
        pairs=int(both_N.sum()),
        only_first=only_first,
        only_second=only_second,
        unscored=int((~both_N).sum()),
        p=mcnemar(only_first, only_second) if both_N.any() else None,
        adjusted_p=None,
        gain=bootstrap.gain(
            average_at_k(table.scores_NK(table.items, first, "sampled")),
            average_at_k(table.scores_NK(table.items, second, "sampled")),
            table.items,
        ),
    )


def score_long(table: Table, checkpoint: str, bootstrap: Bootstrap) -> list[LongScores]:
    """The memory agent and middle truncation by domain and context length."""
    return [
        _long_cell(table, checkpoint, domain, tokens, bootstrap)
        for domain, tokens in table.cells()
        if tokens is not None
    ]


def _long_cell(table: Table, checkpoint: str, domain: Domain | None, tokens: int, bootstrap: Bootstrap) -> LongScores:
    items = table.select(domain, tokens)
    agent_N = table.scores_NK(items, checkpoint, "agent")[:, 0]
    truncation_N = table.scores_NK(items, checkpoint, "truncation")[:, 0]
    truncated = [row[0] for row in table.replies_to(items, checkpoint, "truncation")]
    return LongScores(
        checkpoint=checkpoint,
        domain=domain,
        context_tokens=tokens,
        questions=len(items),
        guess=table.guess(items),
        agent=_mean(agent_N, items),
        truncation=_mean(truncation_N, items),
        evidence_cut_share=share([reply.evidence_cut for reply in truncated]),
        gain=bootstrap.gain(truncation_N, agent_N, items),
    )


def _mean(values_N: Floats, items: Sequence[Item]) -> float | None:
    return stratified_mean(values_N, _lengths_N(items))


def _lengths_N(items: Sequence[Item]) -> Integers:
    """Strata: lengths count the same, however many questions each has."""
    return np.array([item.length_bucket for item in items], dtype=np.int64)
