"""The reference engine against a plain loop over transformers, and what stops or skips an update."""

import copy
import math

import pytest
import torch

from tasks.errors import PipelineError
from tasks.records import Domain, Finish, Verdict
from tasks.rl.engines.local import LocalEngine
from tasks.rl.entropy_control import Gate
from tasks.rl.episodes import Episode, Turn
from tests.rl.tiny import SPECIAL, WORDS, tiny_model, tiny_params, tiny_tokenizer

NEVER = "rl.entropy_control=null"
UNCLIPPED = "rl.clipping={type: none}"
PROMPTS = [(3, 5, 6, 7, 4), (3, 9, 10, 4), (3, 5, 6, 8, 8, 8, 4)]
REPLIES = [(5, 6, 1), (7, 1), (8, 9, 10, 11), (5, 1), (6, 6, 1), (9, 1)]


@pytest.fixture
def model():
    return tiny_model(vocabulary=len(SPECIAL) + len(WORDS))


def engine(model, *overrides, budget=10_000, advantage="mean_only"):
    return LocalEngine(model, tiny_tokenizer(), tiny_params(*overrides).rl, advantage, budget)


def episodes(rewards=(1.0, 0.0, 1.0, 0.0, 1.0, 0.0)):
    verdicts = {1.0: Verdict.CORRECT, 0.0: Verdict.WRONG, None: Verdict.UNSCORED}
    return [
        Episode(
            group=n // 2,
            domain=Domain.MULTI_HOP,
            turns=(Turn(PROMPTS[n // 2], reply, Finish.FINISHED),),
            verdict=verdicts[reward],
            reward=reward,
        )
        for n, (reply, reward) in enumerate(zip(REPLIES, rewards, strict=True))
    ]  # fmt: skip


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def plain_update(model, temperature=1.0, learning_rate=0.003 / 2):
    """REINFORCE over the same episodes, one sequence at a time through transformers."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.98), weight_decay=0.0)
    total = 0.0
    for n, reply in enumerate(REPLIES):
        prompt = PROMPTS[n // 2]
        logits = model(input_ids=torch.tensor([prompt + reply])).logits[0, len(prompt) - 1 : -1] / temperature
        logprobs = logits.log_softmax(-1).gather(1, torch.tensor(reply)[:, None])
        total = total - (0.5 if n % 2 == 0 else -0.5) * logprobs.sum() / sum(map(len, REPLIES))
    total.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    return float(norm)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("budget", [10_000, 12, 1])
def test_an_update_equals_the_plain_loop_for_any_micro_batch(model, budget, temperature):
    other = copy.deepcopy(model)
    mine = engine(model, NEVER, UNCLIPPED, f"rl.sampling.temperature={temperature}", budget=budget)
    update = mine.update(episodes(), Gate(), step=1)
    assert update.gradient_norm == pytest.approx(plain_update(other, temperature), rel=1e-4)
    torch.testing.assert_close(weights(model), weights(other), atol=1e-5, rtol=0)
    assert update.kept_share == 1.0 and not update.skipped
    assert update.learning_rate == 0.003 / 2


def test_the_learning_rate_warms_up_and_stays(model):
    mine = engine(model)
    assert [mine.update(episodes(), Gate(), step).learning_rate for step in (1, 2, 3, 50)] == [
        0.0015, 0.003, 0.003, 0.003,
    ]  # fmt: skip
    assert engine(model, "rl.warmup_steps=0").update(episodes(), Gate(), 1).learning_rate == 0.003


def test_entropy_is_eq_11_of_the_policy_before_the_update(model):
    means = []
    for n, reply in enumerate(REPLIES):
        prompt = PROMPTS[n // 2]
        logprobs = model(input_ids=torch.tensor([prompt + reply])).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        means.append(-(logprobs.exp() * logprobs).sum(-1).mean().item())
    update = engine(model).update(episodes(), Gate(), 1)
    assert update.entropy == pytest.approx(sum(means) / 6, rel=1e-5)


@pytest.mark.parametrize("budget", [10_000, 12])
@pytest.mark.parametrize(
    "rewards",
    [(1.0,) * 6, (0.0,) * 6, (None,) * 6, (1.0, None) * 3],
    ids=["right", "wrong", "unscored", "lone"],
)
def test_a_batch_that_teaches_nothing_leaves_the_weights(model, rewards, budget):
    before = weights(model)
    mine = engine(model, budget=budget)
    update = mine.update(episodes(rewards), Gate(), 1)
    assert update.skipped and update.gradient_norm == 0.0
    assert torch.equal(weights(model), before)


def test_a_shut_gate_trains_on_the_better_half_only(model):
    other = copy.deepcopy(model)
    always = "rl.entropy_control={low: 0.001, high: 0.002}"
    update = engine(model, always, UNCLIPPED).update(episodes(), Gate(), 1)
    assert update.gate.on and update.kept_share == pytest.approx(10 / 16)
    free = engine(other, NEVER, UNCLIPPED).update(episodes(), Gate(), 1)
    assert not free.gate.on and not torch.equal(weights(model), weights(other))


def test_unscored_episodes_change_nothing_for_their_neighbours(model):
    """Row 1 unscored leaves row 0 alone in its group: only groups 1 and 2 teach; the denominator stays 16."""
    other = copy.deepcopy(model)
    rewards = (1.0, None, 1.0, 0.0, 1.0, 0.0)
    left = engine(model, NEVER, UNCLIPPED).update(episodes(rewards), Gate(), 1)
    right = engine(other, NEVER, UNCLIPPED).update(episodes((1.0, 1.0, 1.0, 0.0, 1.0, 0.0)), Gate(), 1)
    assert left.gradient_norm == right.gradient_norm
    assert torch.equal(weights(model), weights(other))


@pytest.mark.parametrize("overrides", [(), (NEVER,)], ids=["entropy", "gradient"])
def test_a_broken_policy_ends_the_run_with_its_weights_untouched(model, overrides):
    with torch.no_grad():
        model.model.norm.weight[0] = math.nan
    before = weights(model)
    with pytest.raises(PipelineError, match="must be finite"):
        engine(model, *overrides).update(episodes(), Gate(), 1)
    assert torch.equal(weights(model).nan_to_num(), before.nan_to_num())


def test_saved_state_goes_on_bitwise(model, tmp_path):
    first = engine(model)
    first.update(episodes(), Gate(), 1)
    first.save_state(tmp_path)
    first.update(episodes(), Gate(), 2)
    other = tiny_model(seed=9, vocabulary=len(SPECIAL) + len(WORDS))
    second = engine(other)
    second.load_state(tmp_path)
    second.update(episodes(), Gate(), 2)
    assert torch.equal(weights(model), weights(other))


def test_turns_of_a_trajectory_share_its_advantage(model):
    """A trajectory of two turns pushes both of its replies up when it was right."""
    right = Episode(
        0, Domain.MULTI_HOP,
        (Turn(PROMPTS[0], (5, 1), Finish.FINISHED), Turn(PROMPTS[1], (6, 1), Finish.FINISHED)),
        Verdict.CORRECT, 1.0,
    )  # fmt: skip
    wrong = Episode(0, Domain.MULTI_HOP, (Turn(PROMPTS[2], (7, 1), Finish.FINISHED),), Verdict.WRONG, 0.0)

    def logprob(prompt, reply):
        logits = model(input_ids=torch.tensor([prompt + reply])).logits[0, len(prompt) - 1 : -1]
        return float(logits.detach().log_softmax(-1).gather(1, torch.tensor(reply)[:, None]).sum())

    turns = [(t.prompt_ids, t.response_ids) for e in (right, wrong) for t in e.turns]
    before = [logprob(*turn) for turn in turns]
    engine(model, NEVER, UNCLIPPED, advantage="group").update([right, wrong], Gate(), 1)
    after = [logprob(*turn) for turn in turns]
    assert after[0] > before[0] and after[1] > before[1] and after[2] < before[2]
