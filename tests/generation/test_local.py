"""Sampling by hand-worked distributions, and completions that depend on the seed and nothing else."""

import pytest
import torch

from tasks.errors import CheckpointError, InputError
from tasks.generation.base import Sampling
from tasks.generation.local import LocalGenerator, sample_tokens
from tasks.records import Finish
from tests.rl.tiny import SPECIAL, WORDS, guessing_model, tiny_model, tiny_tokenizer

LOGITS = torch.tensor([[0.5, 0.12, 0.3, 0.08]]).log()
PROMPTS = [[3, 5, 6, 7, 4], [3, 9, 4], [3, 5, 6, 7, 4], [3, 8, 8, 8, 8, 8, 8, 8, 4]]


@pytest.fixture(scope="module")
def model():
    return tiny_model(vocabulary=len(SPECIAL) + len(WORDS))


def draw(uniforms, temperature=1.0, top_p=1.0, logits=LOGITS):
    uniforms = torch.tensor(uniforms)
    return sample_tokens(logits.expand(len(uniforms), -1), temperature, top_p, uniforms).tolist()


def test_sampling_inverts_the_distribution_function():
    assert draw([0.0, 0.49, 0.51, 0.79, 0.81, 0.95]) == [0, 0, 2, 2, 1, 3]


def test_top_p_keeps_the_fewest_tokens_that_reach_it_and_renormalises():
    assert draw([0.0, 0.62, 0.63, 0.999], top_p=0.7) == [0, 0, 2, 2]  # 0.5 / 0.8 = 0.625
    assert draw([0.0, 0.999], top_p=0.5) == [0, 0]
    assert draw([0.999], top_p=1e-6) == [0]


def test_temperature_zero_takes_the_likeliest_and_low_temperature_sharpens():
    assert draw([0.999], temperature=0.0) == [0]
    assert draw([0.69, 0.70], temperature=0.5) == [0, 2]  # 0.25 / (0.25 + 0.0144 + 0.09 + 0.0064) = 0.693


def test_an_impossible_token_is_never_drawn():
    logits = torch.tensor([[0.0, -torch.inf, 0.0]])
    assert set(draw([0.0, 0.3, 0.6, 0.99999994], logits=logits)) == {0, 2}


def test_a_flat_distribution_wider_than_the_sorted_head_is_sampled_whole():
    drawn = draw([i / 1000 for i in range(1000)], top_p=0.95, logits=torch.zeros(1, 500))
    assert len(set(drawn)) == 475


def test_the_seed_alone_decides(model):
    generator = LocalGenerator(model, tiny_tokenizer())
    sampling = Sampling(1.0, 0.95, 12, samples=3)
    first = generator.generate(PROMPTS, sampling, seed=1)
    assert first == generator.generate(PROMPTS, sampling, seed=1)
    assert first != generator.generate(PROMPTS, sampling, seed=2)
    assert [len(group) for group in first] == [3, 3, 3, 3]
    assert len({c.token_ids for group in first for c in group}) > 6


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_samples_carry_the_log_probabilities_of_the_whole_softmax(model, temperature):
    """Before any top-p cut, and also where finished rows have left the batch."""
    generator = LocalGenerator(model, tiny_tokenizer())
    for prompt, group in zip(PROMPTS, generator.generate(PROMPTS, Sampling(temperature, 0.5, 12, 3), 1), strict=True):
        for reply in group:
            ids = torch.tensor([[*prompt, *reply.token_ids]])
            with torch.no_grad():
                logits = model(input_ids=ids).logits[0, len(prompt) - 1 : -1] / (temperature or 1.0)
            expected = logits.log_softmax(-1).gather(1, torch.tensor(reply.token_ids)[:, None])[:, 0]
            assert reply.logprobs == pytest.approx(expected.tolist(), abs=1e-5)


def test_neither_batches_nor_dropped_rows_change_a_result(model, monkeypatch):
    sampling = Sampling(1.0, 0.95, 12, samples=3)
    whole = LocalGenerator(model, tiny_tokenizer()).generate(PROMPTS, sampling, seed=1)
    assert whole == LocalGenerator(model, tiny_tokenizer(), token_budget=20).generate(PROMPTS, sampling, seed=1)
    monkeypatch.setattr("tasks.generation.local.COMPACT_SHARE", 0.0)
    assert whole == LocalGenerator(model, tiny_tokenizer()).generate(PROMPTS, sampling, seed=1)


def test_greedy_equals_transformers_generate(model):
    sampling = Sampling(0.0, 1.0, 10)
    completions = LocalGenerator(model, tiny_tokenizer()).generate(PROMPTS, sampling, seed=0)
    for prompt, [completion] in zip(PROMPTS, completions, strict=True):
        expected = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt)),
            max_new_tokens=10,
            do_sample=False,
        )[0, len(prompt) :].tolist()
        assert list(completion.token_ids) == expected


def test_finished_and_truncated_are_told_apart():
    tokenizer = tiny_tokenizer()
    generator = LocalGenerator(guessing_model(tokenizer), tokenizer)
    prompt = tokenizer.prompt_ids("what is red ?")
    finished = generator.generate([prompt], Sampling(1.0, 0.9, 8, samples=4), seed=0)[0]
    cut = generator.generate([prompt], Sampling(1.0, 0.9, 1, samples=4), seed=0)[0]
    assert {c.finish for c in finished} == {Finish.FINISHED}
    assert all(c.token_ids[-1] == tokenizer.end_id and c.text in ("red", "green", "blue") for c in finished)
    assert {c.finish for c in cut} == {Finish.TRUNCATED}
    assert [c.token_ids for c in cut] == [c.token_ids[:1] for c in finished]


def test_prompts_that_cannot_be_sampled_are_refused(model):
    generator = LocalGenerator(model, tiny_tokenizer())
    with pytest.raises(InputError, match="256 positions"):
        generator.generate([[5] * 250], Sampling(1.0, 1.0, 10), seed=0)
    with pytest.raises(InputError, match="prompt 1 is empty"):
        generator.generate([[5], []], Sampling(1.0, 1.0, 10), seed=0)
    assert generator.generate([], Sampling(1.0, 1.0, 10), seed=0) == []


def test_load_reads_a_folder_and_refuses_a_broken_one(model, tmp_path):
    with pytest.raises(CheckpointError):
        LocalGenerator.load(tmp_path / "none")
    model.save_pretrained(tmp_path / "whole")
    tiny_tokenizer().save(tmp_path / "whole")
    sampling = Sampling(1.0, 0.95, 5)
    loaded = LocalGenerator.load(tmp_path / "whole").generate(PROMPTS, sampling, seed=3)
    assert loaded == LocalGenerator(model, tiny_tokenizer()).generate(PROMPTS, sampling, seed=3)


def test_a_seed_for_each_prompt_gives_what_separate_calls_give(model):
    generator = LocalGenerator(model, tiny_tokenizer())
    sampling = Sampling(temperature=1.0, top_p=1.0, max_new_tokens=6, samples=3)
    together = generator.generate(PROMPTS[:2], sampling, [1, 2])
    apart = [*generator.generate(PROMPTS[:1], sampling, 1), *generator.generate(PROMPTS[1:2], sampling, 2)]
    assert [[reply.token_ids for reply in group] for group in together] == [
        [reply.token_ids for reply in group] for group in apart
    ]
