"""Quotas are exact, nobody starves, and a resumed sampler goes on where it stopped (cases SM-01, RS-01)."""

import warnings
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.errors import InputError
from tasks.rl.sampling import DomainSampler, SamplerState, pooled

FIVE = ("mc", "hop", "rc", "dlg", "num")


def questions(counts):
    return {domain: [f"{domain}{n}" for n in range(count)] for domain, count in counts.items()}


def sampler(counts, batch, weights=None, seed=1):
    return DomainSampler(questions(counts), weights or dict.fromkeys(counts, 1.0), batch, seed)


def by_domain(ids):
    return Counter(name.rstrip("0123456789") for name in ids)


@pytest.mark.parametrize(("batch", "each"), [(3, 9), (128, 900)])
def test_the_remainder_rotates(batch, each):
    drawn = sampler(dict.fromkeys(FIVE, each), batch)
    batches = [drawn.next_batch() for _ in range(5)]
    assert {len(ids) for ids in batches} == {batch}
    assert by_domain(name for ids in batches for name in ids) == dict.fromkeys(FIVE, batch)


def test_float_weights_lose_nobody():
    weights = {"a": 0.29, "b": 0.71}  # int(100 * 0.29) is 28
    assert by_domain(sampler({"a": 99, "b": 99}, 100, weights).next_batch()) == {"a": 29, "b": 71}


def test_an_empty_domain_is_skipped_with_one_warning():
    with pytest.warns(UserWarning, match="no questions for e") as caught:
        drawn = sampler({"a": 9, "b": 9, "c": 9, "d": 9, "e": 0}, 10)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batches = [drawn.next_batch() for _ in range(2)]
    assert [len(ids) for ids in batches] == [10, 10]
    assert by_domain(batches[0] + batches[1]) == dict.fromkeys("abcd", 5)


def test_a_domain_of_weight_zero_is_left_out_silently():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = sampler({"a": 3, "b": 3}, 4, {"a": 1.0, "b": 0.0})
    assert by_domain(drawn.next_batch()) == {"a": 4}


def test_every_question_is_drawn_once_before_any_again():
    drawn = sampler({"a": 7}, 3)
    ids = [name for _ in range(7) for name in drawn.next_batch()]
    for epoch in range(3):
        assert len(set(ids[7 * epoch : 7 * epoch + 7])) == 7
    assert ids[:7] != ids[7:14]


def test_a_domain_smaller_than_its_quota_repeats():
    assert by_domain(sampler({"a": 1, "b": 9}, 8).next_batch()) == {"a": 4, "b": 4}


@pytest.mark.filterwarnings("ignore:no questions")
def test_nothing_to_draw_and_double_ids_are_refused():
    with pytest.raises(InputError, match="no question in any weighted domain"):
        sampler({"a": 0}, 2)
    with pytest.raises(InputError, match="'x' of b occurs twice"):
        DomainSampler({"a": ["x"], "b": ["x"]}, {"a": 1.0, "b": 1.0}, 2, 0)


@pytest.mark.parametrize("stop", [3, 5, 7])
def test_a_resumed_sampler_draws_what_the_uninterrupted_one_does(stop):
    whole = sampler({"a": 10}, 2)
    expected = [whole.next_batch() for _ in range(15)]
    first = sampler({"a": 10}, 2)
    head = [first.next_batch() for _ in range(stop)]
    second = sampler({"a": 10}, 2)
    second.restore(SamplerState.model_validate_json(first.state().model_dump_json()))
    assert head + [second.next_batch() for _ in range(15 - stop)] == expected
    assert second.state() == whole.state()
    assert Counter(name for ids in expected for name in ids) == dict.fromkeys((f"a{n}" for n in range(10)), 3)


@pytest.mark.parametrize(
    ("counts", "weights", "seed"),
    [({"a": 11}, {"a": 1.0}, 1), ({"a": 10}, {"a": 2.0}, 1), ({"a": 10}, {"a": 1.0}, 2)],
)
def test_a_state_of_other_data_weights_or_seed_is_refused(counts, weights, seed):
    state = sampler({"a": 10}, 2).state()
    with pytest.raises(InputError, match="start the stage anew"):
        sampler(counts, 2, weights, seed).restore(state)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 99)), min_size=1, max_size=6),
    st.integers(1, 40),
    st.integers(1, 12),
)
def test_no_domain_is_ever_a_whole_place_ahead_of_its_share(domains, batch, steps):
    names = "abcdef"[: len(domains)]
    weights = {name: weight / 100 for name, (_, weight) in zip(names, domains, strict=True)}
    drawn = sampler({name: count for name, (count, _) in zip(names, domains, strict=True)}, batch, weights)
    counts = Counter()
    for step in range(1, steps + 1):
        ids = drawn.next_batch()
        assert len(ids) == batch
        counts += by_domain(ids)
        for name in names:
            assert counts[name] < step * batch * weights[name] / sum(weights.values()) + 1 + 1e-9


def test_a_pool_is_drawn_whole_whatever_the_domains():
    """Six to two: eight questions make an epoch of two batches, and the shares are the pool's, not the weights'."""
    weights = {"a": 1.0, "b": 1.0, "c": 0.0}
    drawn = DomainSampler(*pooled(questions({"a": 6, "b": 2, "c": 5}), weights), 4, seed=3)
    assert by_domain(drawn.next_batch() + drawn.next_batch()) == {"a": 6, "b": 2}
    again = DomainSampler(*pooled(questions({"a": 6, "b": 2}), {"a": 1.0, "b": 1.0}), 4, seed=3)
    again.restore(SamplerState.model_validate_json(drawn.state().model_dump_json()))
    assert again.next_batch() == drawn.next_batch()


def test_an_empty_pool_is_refused():
    with pytest.warns(UserWarning, match="no questions"), pytest.raises(InputError, match="no question"):
        DomainSampler(*pooled({"a": []}, {"a": 1.0}), 2, 0)
