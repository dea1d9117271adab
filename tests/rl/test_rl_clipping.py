"""Which tokens lose their negative gradient, by hand."""

import pytest
import torch

from tasks.params import AbsoluteClipping, NoClipping, QuantileClipping
from tasks.rl.clipping import kept_tokens, sequence_means

ADVANTAGES = torch.tensor([1.0, -1.0, -0.5, 0.0])
ENTROPIES = torch.tensor([[2.0, 2.0, 2.0], [0.1, 0.9, 7.0], [0.4, 0.2, 0.6], [3.0, 3.0, 3.0]])
MASK = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 1, 1], [1, 0, 0]]).bool()
MEANS = [2.0, 0.5, 0.4, 3.0]


def kept(clipping, advantages=ADVANTAGES):
    return kept_tokens(advantages, ENTROPIES, MASK, clipping).int().tolist()


def absolute(level, threshold, side="high"):
    return AbsoluteClipping(type="absolute", level=level, side=side, threshold=threshold)


def quantile(level, share, side="high"):
    return QuantileClipping(type="quantile", level=level, side=side, quantile=share)


def test_sequence_means_skip_padding():
    assert sequence_means(ENTROPIES, MASK).tolist() == pytest.approx(MEANS)
    assert sequence_means(ENTROPIES, torch.zeros_like(MASK)).tolist() == [0.0] * 4


def test_no_clipping_keeps_the_mask():
    assert kept(NoClipping(type="none")) == MASK.int().tolist()


def test_tokens_above_an_absolute_threshold():
    """Only negative rows lose tokens; a token exactly at the threshold stays."""
    assert kept(absolute("token", 0.4)) == [[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 0, 0]]


def test_sequences_above_an_absolute_threshold():
    assert kept(absolute("sequence", 0.45)) == [[1, 1, 1], [0, 0, 0], [1, 1, 1], [1, 0, 0]]
    assert kept(absolute("sequence", 0.01)) == [[1, 1, 1], [0, 0, 0], [0, 0, 0], [1, 0, 0]]


def test_quantiles_are_over_negative_tokens_only():
    """Negative tokens 0.1 0.2 0.4 0.6 0.9: the median 0.4 stays, 0.6 and 0.9 go; padding's 7.0 does not
    count.
    """
    assert kept(quantile("token", 0.5)) == [[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 0, 0]]


def test_quantiles_are_over_negative_sequences_only():
    assert kept(quantile("sequence", 0.5)) == [[1, 1, 1], [0, 0, 0], [1, 1, 1], [1, 0, 0]]


def test_the_high_side_is_the_published_one():
    assert QuantileClipping(type="quantile", level="token", quantile=0.5).side == "high"
    assert AbsoluteClipping(type="absolute", level="token", threshold=0.5).side == "high"


def test_the_low_side_drops_what_is_certain():
    """Negative tokens 0.1 0.2 0.4 0.6 0.9 and means 0.4 0.5: what is at the threshold stays, padding and positive
    rows too.
    """
    assert kept(absolute("token", 0.4, "low")) == [[1, 1, 1], [0, 1, 0], [1, 0, 1], [1, 0, 0]]
    assert kept(absolute("sequence", 0.45, "low")) == [[1, 1, 1], [1, 1, 0], [0, 0, 0], [1, 0, 0]]
    assert kept(quantile("token", 0.5, "low")) == [[1, 1, 1], [0, 1, 0], [1, 0, 1], [1, 0, 0]]
    assert kept(quantile("sequence", 0.5, "low")) == [[1, 1, 1], [1, 1, 0], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("level", ["token", "sequence"])
def test_the_bottom_quantile_and_equal_entropies_clip_nothing_on_the_low_side(level):
    assert kept(quantile(level, 0.0, "low")) == MASK.int().tolist()
    flat = torch.full_like(ENTROPIES, 0.7)
    assert torch.equal(kept_tokens(ADVANTAGES, flat, MASK, quantile(level, 1.0, "low")), MASK)


@pytest.mark.parametrize("level", ["token", "sequence"])
def test_the_top_quantile_and_equal_entropies_clip_nothing(level):
    assert kept(quantile(level, 1.0)) == MASK.int().tolist()
    flat = torch.full_like(ENTROPIES, 0.7)
    assert torch.equal(kept_tokens(ADVANTAGES, flat, MASK, quantile(level, 0.0)), MASK)


@pytest.mark.parametrize(
    "clipping",
    [
        absolute("token", 0.01),
        quantile("sequence", 0.0),
        quantile("token", 0.0),
        absolute("sequence", 9.0, "low"),
        quantile("token", 1.0, "low"),
    ],
)
def test_without_negatives_or_tokens_nothing_is_clipped(clipping):
    assert kept(clipping, ADVANTAGES.abs()) == MASK.int().tolist()
    nothing = torch.zeros_like(MASK)
    assert not kept_tokens(ADVANTAGES, ENTROPIES, nothing, clipping).any()
