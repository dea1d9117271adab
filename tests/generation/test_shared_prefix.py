"""The shared forward equals the model's own, value and gradient, whatever is padded or shared with whom."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Qwen3Config, Qwen3ForCausalLM

from tasks.errors import CheckpointError
from tasks.generation.shared_prefix import (
    Decoder,
    Grid,
    SharedPrompts,
    check_supported,
    encode_prompts,
    forward_suffixes,
    share_prompts,
)
from tests.rl.tiny import tiny_model

MODELS = [
    pytest.param({}, id="dense"),
    pytest.param({"kv_heads": 1}, id="grouped-query"),
    pytest.param({"experts": 4}, id="moe"),
]
prompt_lists = st.lists(st.lists(st.integers(2, 4), min_size=1, max_size=6), min_size=1, max_size=8)


def shared_logits(model, prompts, replies):
    """Logits that predict each reply's tokens, reply by reply."""
    shared = share_prompts(prompts)
    suffixes = [(*rest, *reply[:-1]) for rest, reply in zip(shared.rests, replies, strict=True)]
    hidden = forward_suffixes(model, encode_prompts(model, shared.prefixes), shared.prefix_of, suffixes)
    per_sample = hidden.split([len(suffix) for suffix in suffixes])
    return [model.lm_head(part[-len(reply) :]) for part, reply in zip(per_sample, replies, strict=True)]


def own_logits(model, prompts, replies):
    """The same from transformers, one unpadded sequence at a time."""
    logits = []
    for prompt, reply in zip(prompts, replies, strict=True):
        whole = model(input_ids=torch.tensor([[*prompt, *reply]])).logits[0]
        logits.append(whole[len(prompt) - 1 : -1])
    return logits


def ragged_batch(seed=0):
    """Unequal groups of equal prompts, alike ones, a lone one and one of a single token; replies of 1 to 7
    tokens.
    """
    rng = random.Random(seed)
    chunk = [rng.randrange(2, 60) for _ in range(12)]
    distinct = [
        [rng.randrange(2, 60) for _ in range(20)],
        [*chunk, 7, 8, 9],
        [*chunk, 9, 5],
        [*chunk, 7, 8],
        [rng.randrange(2, 60) for _ in range(5)],
        [11],
    ]
    prompts = [prompt for prompt, count in zip(distinct, (4, 1, 2, 1, 1, 2), strict=True) for _ in range(count)]
    rng.shuffle(prompts)
    replies = [[rng.randrange(0, 60) for _ in range(rng.randint(1, 7))] for _ in prompts]
    return prompts, replies


@pytest.mark.parametrize("kwargs", MODELS)
def test_logits_and_every_gradient_equal_the_unshared_forward(kwargs):
    model = tiny_model(**kwargs)
    prompts, replies = ragged_batch()
    weights = [torch.randn(len(reply), 60) for reply in replies]
    gradients = []
    for forward in (shared_logits, own_logits):
        logits = forward(model, prompts, replies)
        model.zero_grad()
        sum((part.log_softmax(-1) * weight).sum() for part, weight in zip(logits, weights, strict=True)).backward()
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
        if forward is shared_logits:
            mine = logits
    for left, right in zip(mine, logits, strict=True):
        torch.testing.assert_close(left, right, atol=1e-5, rtol=1e-5)
    assert gradients[0].keys() == gradients[1].keys() and len(gradients[0]) > 20
    for name, gradient in gradients[1].items():
        scale = float(gradient.abs().max())
        torch.testing.assert_close(gradients[0][name] / scale, gradient / scale, atol=1e-5, rtol=0, msg=name)


def test_uniform_groups_equal_the_unshared_forward():
    model = tiny_model()
    prompts = [[5] * 9] * 3 + [[6, 7] * 4] * 3
    replies = [[n, n + 1, 1] for n in range(6)]
    for left, right in zip(shared_logits(model, prompts, replies), own_logits(model, prompts, replies), strict=True):
        torch.testing.assert_close(left, right, atol=1e-5, rtol=1e-5)


def test_pads_do_not_matter():
    """RL-09: the same log-probabilities alone, beside longer neighbours, and left-padded in transformers."""
    model = tiny_model()
    prompt, reply = [7, 8], [9, 10]
    alone = shared_logits(model, [prompt], [reply])[0].log_softmax(-1)
    beside = shared_logits(model, [prompt, [3] * 40], [reply, [4] * 9])[0].log_softmax(-1)
    padded = model(
        input_ids=torch.tensor([[0, 0, 0, 7, 8, 9, 10]]),
        attention_mask=torch.tensor([[0, 0, 0, 1, 1, 1, 1]]),
        position_ids=torch.tensor([[0, 0, 0, 0, 1, 2, 3]]),
    ).logits[0, 4:6].log_softmax(-1)  # fmt: skip
    assert alone.shape == (2, 60)
    torch.testing.assert_close(alone, beside, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(alone, padded, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kwargs", MODELS)
def test_decoding_gives_the_logits_of_the_training_forward(kwargs):
    """The first on-policy importance ratio is 1: what sampled the tokens is what trains on them."""
    model = tiny_model(**kwargs)
    prompts, replies = ragged_batch(1)
    shared = share_prompts(prompts)
    longest = max(len(reply) for reply in replies)
    decoder = Decoder(model, encode_prompts(model, shared.prefixes), shared.prefix_of, 4 + longest)
    decoded = [[] for _ in replies]
    live, feed = list(range(len(replies))), list(shared.rests)
    for step in range(longest):
        logits = model.lm_head(decoder.feed(feed))
        for place, n in enumerate(live):
            decoded[n].append(logits[place])
        places = [place for place, n in enumerate(live) if len(replies[n]) > step + 1]
        decoder.keep(places)
        live = [live[place] for place in places]
        feed = [[replies[n][step]] for n in live]
        if not live:
            break
    for left, right, reply in zip(decoded, own_logits(model, prompts, replies), replies, strict=True):
        ratio = (torch.stack(left).log_softmax(-1) - right.log_softmax(-1)).exp()
        chosen = ratio.gather(1, torch.tensor(reply)[:, None])
        torch.testing.assert_close(chosen, torch.ones_like(chosen), atol=1e-4, rtol=0)


def test_rests_of_several_tokens_are_fed_at_once():
    model = tiny_model()
    shared = SharedPrompts(prefixes=((5, 6, 7),), prefix_of=(0, 0), rests=((8, 9, 10), (11,)))
    decoder = Decoder(model, encode_prompts(model, shared.prefixes), shared.prefix_of, 4)
    logits = model.lm_head(decoder.feed(shared.rests))
    for row, prompt in enumerate(([5, 6, 7, 8, 9, 10], [5, 6, 7, 11])):
        expected = model(input_ids=torch.tensor([prompt])).logits[0, -1]
        torch.testing.assert_close(logits[row], expected, atol=1e-5, rtol=1e-5)


def test_equal_prompts_share_all_but_their_last_token():
    shared = share_prompts([[1, 2, 3], [1, 2, 3], [1, 2, 3]])
    assert shared == SharedPrompts(((1, 2),), (0, 0, 0), ((3,), (3,), (3,)))


def test_prompts_that_share_only_their_first_words_stay_apart():
    opening = [1, 2, 3]
    prompts = [opening + [10 * n + m for m in range(400)] for n in range(4)]
    assert len(share_prompts(prompts).prefixes) == 4


def test_alike_prompts_share_only_when_that_is_less_work():
    few = share_prompts([[1, 2, 3, 4, 5], [1, 2, 3, 4, 6]])  # 4 + 1 + 1 tokens instead of 10
    assert few == SharedPrompts(((1, 2, 3, 4),), (0, 0), ((5,), (6,)))
    many = share_prompts([[1, 5, 5, 5]] * 4 + [[1, 6, 6, 6]] * 4)  # 1 + 8·3 tokens instead of 2·(3 + 4)
    assert many.prefixes == ((1, 5, 5), (1, 6, 6))


@settings(deadline=None)
@given(prompt_lists)
def test_sharing_loses_nothing_and_never_adds_tokens(prompts):
    shared = share_prompts(prompts)
    whole = [(*shared.prefixes[p], *rest) for p, rest in zip(shared.prefix_of, shared.rests, strict=True)]
    assert whole == [tuple(prompt) for prompt in prompts]
    assert all(shared.rests)
    tokens = sum(map(len, shared.prefixes)) + sum(map(len, shared.rests))
    assert tokens <= sum(map(len, prompts))


@settings(deadline=None)
@given(prompt_lists, st.integers(1, 30), st.data())
def test_packing_covers_every_prompt_once_within_the_budget(prompts, budget, data):
    shared = share_prompts(prompts)
    new = data.draw(st.lists(st.integers(0, 5), min_size=len(prompts), max_size=len(prompts)))
    batches = shared.pack(new, budget)
    assert sorted(row for batch in batches for row in batch) == list(range(len(prompts)))
    for batch in batches:
        part = shared.select(batch)
        tokens = sum(map(len, part.prefixes)) + sum(map(len, part.rests)) + sum(new[row] for row in batch)
        assert tokens <= budget or len(batch) == 1
        assert [(*part.prefixes[p], *rest) for p, rest in zip(part.prefix_of, part.rests, strict=True)] == [
            tuple(prompts[row]) for row in batch
        ]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=12))
def test_a_grid_gives_back_what_it_padded(rows):
    grid = Grid.from_rows(rows, 4)
    x_T = torch.arange(1.0, len(rows) + 1)
    padded = grid.pad(x_T)
    assert padded.shape[0] == 4 and float(padded.sum()) == float(x_T.sum())
    torch.testing.assert_close(grid.flatten(padded), x_T)


def test_an_empty_prompt_is_refused():
    with pytest.raises(ValueError, match=r"\[1\] are empty"):
        share_prompts([[1], []])


def test_a_model_with_other_attention_is_refused():
    config = Qwen3Config(
        vocab_size=20, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, head_dim=16, use_sliding_window=True, sliding_window=4, max_window_layers=1,
    )  # fmt: skip
    with pytest.raises(CheckpointError, match="full attention"):
        check_supported(Qwen3ForCausalLM(config))
