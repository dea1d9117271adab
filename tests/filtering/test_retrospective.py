"""The choice of a stage's questions by hand."""

import random
from collections import Counter

import pytest

from tasks.filtering.retrospective import (
    Reason,
    Rerolled,
    in_turn,
    reason_of,
    retrospective_weight,
    select,
    weighted_order,
)
from tasks.records import Domain
from tests.filtering.builders import item, question

D = Domain


def rolled(name: str, mean: float, domain: Domain = D.MULTI_HOP) -> Rerolled:
    return Rerolled(item(question(name, domain=domain)), mean, 8)


@pytest.mark.parametrize(("mean", "weight"), [(1.0, 1.0), (0.5, 2.0), (0.125, 8.0), (0.0, 16.0)])
def test_weight(mean: float, weight: float) -> None:
    assert retrospective_weight(mean, samples=8) == weight


@pytest.mark.parametrize(
    ("mean", "reason"),
    [
        (0.0, Reason.ALL_WRONG),
        (0.125, Reason.INFORMATIVE),
        (0.875, Reason.INFORMATIVE),
        (1.0, Reason.ALL_RIGHT),
    ],
)
def test_reason(mean: float, reason: Reason) -> None:
    assert reason_of(rolled("q", mean)) is reason


def test_informative_first_then_all_wrong_then_all_right() -> None:
    fresh = [rolled("right", 1.0), rolled("wrong", 0.0), rolled("mixed", 0.5)]
    names = [choice.rerolled.item.question.id for choice in select(fresh, [], 3, 0.3, "s")]
    assert names == ["mixed", "wrong", "right"]
    assert [choice.reason for choice in select(fresh, [], 1, 0.3, "s")] == [Reason.INFORMATIVE]


def test_earlier_items_fill_their_share_and_no_more() -> None:
    fresh = [rolled(f"f{number}", 0.5) for number in range(20)]
    earlier = [rolled(f"e{number}", 0.5) for number in range(20)]
    reasons = Counter(choice.reason for choice in select(fresh, earlier, 10, 0.3, "s"))
    assert reasons == {Reason.INFORMATIVE: 7, Reason.RETROSPECTIVE: 3}
    reasons = Counter(choice.reason for choice in select(fresh[:2], earlier, 10, 0.3, "s"))
    assert reasons == {Reason.INFORMATIVE: 2, Reason.RETROSPECTIVE: 3}


def test_solved_earlier_items_stay_away_and_fresh_ones_take_their_place() -> None:
    fresh = [rolled(f"f{number}", 0.5) for number in range(20)]
    solved = [rolled(f"e{number}", 1.0) for number in range(20)]
    assert {choice.reason for choice in select(fresh, solved, 10, 0.3, "s")} == {Reason.INFORMATIVE}
    assert len(select(fresh, solved, 10, 0.3, "s")) == 10


def test_domains_take_turns() -> None:
    fresh = [rolled(f"m{number}", 0.5) for number in range(20)]
    fresh += [rolled(f"d{number}", 0.5, D.DIALOGUE_MEMORY) for number in range(3)]
    domains = Counter(choice.rerolled.item.question.domain for choice in select(fresh, [], 10, 0.0, "s"))
    assert domains == {D.MULTI_HOP: 7, D.DIALOGUE_MEMORY: 3}


def test_deterministic_and_empty() -> None:
    fresh = [rolled(f"f{number}", 0.5) for number in range(20)]
    assert select(fresh, fresh, 5, 0.5, "a") == select(fresh, fresh, 5, 0.5, "a")
    assert select(fresh, fresh, 5, 0.5, "a") != select(fresh, fresh, 5, 0.5, "b")
    assert select([], [], 5, 0.5, "a") == []
    assert in_turn(fresh, -1, lambda one: one.item.question.domain) == []


def test_first_draw_is_proportional_to_the_weights() -> None:
    light, heavy = rolled("light", 1.0), rolled("heavy", 0.25)
    rng = random.Random(0)
    first = Counter(weighted_order([light, heavy], [1.0, 4.0], rng)[0].item.question.id for _ in range(5000))
    assert first["heavy"] / 5000 == pytest.approx(0.8, abs=0.02)  # standard error 0.006
