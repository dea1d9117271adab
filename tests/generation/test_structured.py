"""Records from replies: strict, repaired once, in order, and drawn as the model draws."""

from collections.abc import Iterator

import pytest
from pydantic import BaseModel, ConfigDict

from tasks.generation.base import Sampling
from tasks.generation.chat import Reply, Request, Unanswered
from tasks.generation.scripted import ScriptedChat
from tasks.generation.structured import MALFORMED, MISFIT, TRUNCATED, UNANSWERED, Refused, ask, read
from tasks.records import Finish

GREEDY = Sampling(0.0, 1.0, 50)


class Fact(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    value: int


def requests(number: int) -> list[Request]:
    return [Request(f"p{n}", GREEDY, n) for n in range(number)]


def good(n: int) -> str:
    return f'{{"name": "n{n}", "value": {n}}}'


@pytest.mark.parametrize(
    ("text", "reason", "detail"),
    [
        ('{"name": "a", "value": "3"}', MISFIT, "value: Input should be a valid integer"),
        ('{"name": "a", "value": true}', MISFIT, "value: "),
        ('{"name": "a"}', MISFIT, "value: Field required"),
        ('{"name": "a", "value": 1, "more": 2}', MISFIT, "more: "),
        ("{}", MISFIT, "name: Field required; value: Field required"),
        ('{"name": "\\ud800", "value": 1}', MISFIT, ""),  # a lone surrogate cannot be written to a file
        ("none", MALFORMED, "no JSON object"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_place(text: str, reason: str, detail: str) -> None:
    refused = read(text, Fact)
    assert isinstance(refused, Refused) and refused.reason == reason and detail in refused.detail


def test_many_problems_are_named_in_short() -> None:
    class Facts(BaseModel):
        facts: list[Fact]

    refused = read('{"facts": [{}, {}, {}]}', Facts)
    assert isinstance(refused, Refused) and refused.detail.count("Field required") == 3
    assert refused.detail.endswith("and 3 more")


def test_records_come_in_order_and_the_schema_is_set() -> None:
    model = ScriptedChat([good(0), good(1)])
    assert list(ask(model, requests(2), Fact)) == [Fact(name="n0", value=0), Fact(name="n1", value=1)]
    assert [request.schema for request in model.requests] == [Fact, Fact]
    assert list(ask(ScriptedChat([]), [], Fact)) == []


def test_a_broken_reply_is_shown_once_with_its_problem() -> None:
    model = ScriptedChat(['{"name": "a"}', good(0)])
    assert list(ask(model, requests(1), Fact)) == [Fact(name="n0", value=0)]
    first, second = model.requests
    assert second.prompt.startswith(first.prompt)
    assert '{"name": "a"}' in second.prompt and "value: Field required" in second.prompt
    assert (second.sampling, second.seed, second.schema) == (GREEDY, 0, Fact)


def test_a_reply_broken_twice_is_refused() -> None:
    model = ScriptedChat(["nothing", '{"name": 1, "value": 1}'])
    [refused] = ask(model, requests(1), Fact)
    assert isinstance(refused, Refused) and refused.reason == MISFIT
    assert "no JSON object; asked again: name" in refused.detail
    assert len(model.requests) == 2


def test_a_broken_reply_whose_repair_is_unanswered_was_broken() -> None:
    [refused] = ask(ScriptedChat(["nothing", Unanswered("busy")]), requests(1), Fact)
    assert refused == Refused(MALFORMED, "it holds no JSON object; asked again: busy")


def test_cut_and_missing_replies_are_not_asked_again() -> None:
    model = ScriptedChat([Reply(good(0), Finish.TRUNCATED), Unanswered("busy"), good(2)])
    cut, missing, fact = ask(model, requests(3), Fact)
    assert isinstance(cut, Refused) and cut.reason == TRUNCATED
    assert missing == Refused(UNANSWERED, "busy")
    assert fact == Fact(name="n2", value=2)
    assert len(model.requests) == 3


def test_a_repair_that_does_not_fit_the_context_is_not_tried() -> None:
    model = ScriptedChat(["word " * 40], context_tokens=100)
    [refused] = ask(model, requests(1), Fact)
    assert refused == Refused(MALFORMED, "it holds no JSON object")
    assert len(model.requests) == 1


def test_repairs_join_the_stream_and_order_is_kept() -> None:
    """Of 40 replies each third is broken at first; nothing is drawn much ahead, and nothing comes out of turn."""
    tried: set[str] = set()

    def script(request: Request) -> str:
        again = "previous" in request.prompt or request.prompt in tried or "reply" in request.prompt
        tried.add(request.prompt)
        return "broken" if request.seed % 3 == 0 and not again else good(request.seed)

    drawn = 0

    def stream() -> Iterator[Request]:
        nonlocal drawn
        for request in requests(40):
            drawn += 1
            yield request

    model = ScriptedChat(script)
    for number, record in enumerate(ask(model, stream(), Fact)):
        assert record == Fact(name=f"n{number}", value=number)
        assert drawn <= number + 2
    assert number == 39 and len(model.requests) == 40 + 14


def test_a_model_that_draws_ahead_gets_the_late_repairs_in_a_second_stream() -> None:
    class Eager(ScriptedChat):
        def complete(self, requests):
            return iter(list(super().complete(list(requests))))

    model = Eager(["x", good(1), "y", good(0), "z"])
    first, second, third = ask(model, requests(3), Fact)
    assert first == Fact(name="n0", value=0) and second == Fact(name="n1", value=1)
    assert isinstance(third, Refused)
    assert [request.seed for request in model.requests] == [0, 1, 2, 0, 2]
