"""The double gives its script back, in order, and says when it runs out."""

import pytest

from tasks.generation.base import Completion, Sampling
from tasks.generation.chat import Reply, Request, Unanswered
from tasks.generation.scripted import ScriptedChat, ScriptedGenerator
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


def requests(*prompts: str) -> list[Request]:
    return [Request(prompt, Sampling(0.0, 1.0, 5)) for prompt in prompts]


def test_a_chat_gives_its_lines_and_keeps_the_requests():
    cut = Reply("cut", Finish.TRUNCATED)
    chat = ScriptedChat(["a", cut, Unanswered("busy")])
    assert list(chat.complete(requests("p", "q", "r"))) == [Reply("a", Finish.FINISHED), cut, Unanswered("busy")]
    assert chat.requests == requests("p", "q", "r")
    assert (chat.count("two words"), chat.context_tokens, chat.max_output_tokens) == (2, 4096, 256)
    with pytest.raises(IndexError, match="holds 3 replies"):
        next(chat.complete(requests("s")))


def test_a_function_may_be_the_script_and_requests_are_drawn_one_by_one():
    chat = ScriptedChat(lambda request: request.prompt.upper(), context_tokens=8)
    stream = chat.complete(requests("p", "q"))
    assert next(stream) == Reply("P", Finish.FINISHED)
    assert len(chat.requests) == 1 and chat.context_tokens == 8
