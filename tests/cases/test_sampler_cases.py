"""More inputs of the kinds SM-01 and RS-01, and of the same kinds where questions are chosen."""

import json
from collections import Counter

import pytest

from tasks.rl.sampling import DomainSampler, SamplerState


def questions(**counts: int) -> dict[str, list[str]]:
    return {domain: [f"{domain}{number}" for number in range(count)] for domain, count in counts.items()}


def drawn(sampler: DomainSampler, steps: int) -> Counter[str]:
    return Counter(name.rstrip("0123456789") for _ in range(steps) for name in sampler.next_batch())


@pytest.mark.parametrize(
    ("batch", "weights", "steps", "expected"),
    [
        (1, {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}, 4, {"a": 1, "b": 1, "c": 1, "d": 1}),
        (7, {"a": 1.0, "b": 1.0, "c": 1.0}, 3, {"a": 7, "b": 7, "c": 7}),
        (100, {"a": 0.57, "b": 0.43}, 1, {"a": 57, "b": 43}),  # int(100 · 0.57) is 56
        (10, {"a": 0.1, "b": 0.2, "c": 0.7}, 1, {"a": 1, "b": 2, "c": 7}),  # 0.1 + 0.2 is not 0.3
        (3, {"a": 8.0, "b": 1.0}, 3, {"a": 8, "b": 1}),  # a rare domain gets its turn
    ],
)
def test_sm01_shares_are_exact(batch: int, weights: dict[str, float], steps: int, expected: dict[str, int]) -> None:
    sampler = DomainSampler(questions(**dict.fromkeys(weights, 50)), weights, batch, seed=0)
    assert drawn(sampler, steps) == expected


def test_sm01_two_empty_domains_are_one_warning_and_the_batch_stays_full() -> None:
    weights = dict.fromkeys("abcde", 1.0)
    with pytest.warns(UserWarning, match="no questions for b, e") as raised:
        sampler = DomainSampler(questions(a=5, b=0, c=5, d=5, e=0), weights, 6, seed=0)
    assert len(raised) == 1
    assert drawn(sampler, 1) == {"a": 2, "c": 2, "d": 2}


@pytest.mark.parametrize("stop", range(1, 8))
def test_rs01_domains_of_different_epochs_resume_where_they_stood(stop: int) -> None:
    """Batches of 3 over 2 and 5 questions: the epochs of the two end at different steps."""

    def fresh() -> DomainSampler:
        return DomainSampler(questions(a=2, b=5), {"a": 1.0, "b": 2.0}, 3, seed=4)

    whole = fresh()
    expected = [whole.next_batch() for _ in range(8)]
    first = fresh()
    head = [first.next_batch() for _ in range(stop)]
    text = json.dumps(json.loads(first.state().model_dump_json()))  # as written to disk and read again
    second = fresh()
    second.restore(SamplerState.model_validate_json(text))
    assert head + [second.next_batch() for _ in range(8 - stop)] == expected


def test_rs01_an_epoch_is_not_the_last_one_again() -> None:
    sampler = DomainSampler(questions(a=30), {"a": 1.0}, 30, seed=0)
    first, second, third = (sampler.next_batch() for _ in range(3))
    assert sorted(first) == sorted(second) == sorted(third)
    assert len({first, second, third}) == 3
