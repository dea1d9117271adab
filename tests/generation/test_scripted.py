"""The double gives its script back, in order, and says when it runs out."""

import pytest

from tasks.generation.base import Completion, Sampling
from tasks.generation.scripted import ScriptedGenerator
from tasks.records import Finish


def test_replies_come_prompt_by_prompt_and_prompts_are_kept():
    cut = Completion((9,), "cut", Finish.TRUNCATED)
    generator = ScriptedGenerator(["a", "b", cut, "d"])
    replies = generator.generate([[1], [2, 3]], Sampling(1.0, 1.0, 5, samples=2), seed=0)
    assert replies[0] == [Completion((97,), "a", Finish.FINISHED), Completion((98,), "b", Finish.FINISHED)]
    assert replies[1][0] is cut and replies[1][1].text == "d"
    assert generator.prompts == [(1,), (2, 3)]


def test_an_exhausted_script_is_an_error():
    with pytest.raises(IndexError, match="holds 1 replies"):
        ScriptedGenerator(["a"]).generate([[1], [2]], Sampling(1.0, 1.0, 5), seed=0)
