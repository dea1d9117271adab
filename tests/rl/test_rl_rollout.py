"""Full-context rollouts: prompts whole or refused, verdicts from the rules, groups in order."""

import pytest

from tasks.errors import InputError
from tasks.generation.base import Completion, Sampling
from tasks.generation.scripted import ScriptedGenerator
from tasks.records import Finish, Verdict
from tasks.rl.rollout import render_prompt, roll_out
from tests.rl.tiny import tiny_items, tiny_tokenizer

SAMPLING = Sampling(0.7, 0.95, 8, samples=2)


def test_episodes_come_group_by_group_with_their_verdicts():
    tokenizer, items = tiny_tokenizer(), tiny_items(2)  # gold: red, green
    script = [
        "The answer is red.",
        Completion((8,), "The answer is red", Finish.TRUNCATED),
        "The answer is red.",
        "green",
    ]
    generator = ScriptedGenerator(script)
    episodes = roll_out(generator, tokenizer, items, 64, SAMPLING, seed=0)
    assert [episode.group for episode in episodes] == [0, 0, 1, 1]
    assert [episode.verdict for episode in episodes] == [
        Verdict.CORRECT, Verdict.WRONG, Verdict.WRONG, Verdict.CORRECT,
    ]  # fmt: skip
    assert [episode.reward for episode in episodes] == [1.0, 0.0, 0.0, 1.0]
    assert episodes[1].turns[0].finish is Finish.TRUNCATED
    assert generator.prompts == [render_prompt(tokenizer, item, 64) for item in items]
    assert all(len(e.turns) == 1 and e.turns[0].prompt_ids == generator.prompts[e.group] for e in episodes)
    assert episodes[2].domain == items[1].question.domain


def test_a_prompt_over_the_limit_is_refused_not_cut():
    item, tokenizer = tiny_items(1)[0], tiny_tokenizer()
    length = len(render_prompt(tokenizer, item, 64))
    assert len(render_prompt(tokenizer, item, length)) == length
    with pytest.raises(InputError, match=f"q0 has a prompt of {length} tokens, the stage takes {length - 1}"):
        roll_out(ScriptedGenerator([]), tokenizer, [item], length - 1, SAMPLING, seed=0)
