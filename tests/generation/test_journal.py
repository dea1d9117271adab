"""What was answered is never asked again: not in a stream, not in another run, not after a kill."""

import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from tasks.errors import InputError
from tasks.generation import journal
from tasks.generation.base import Sampling
from tasks.generation.chat import Reply, Request, Unanswered
from tasks.generation.journal import Remembered
from tasks.generation.scripted import ScriptedChat
from tasks.records import Finish
from tests.conftest import CHECKOUT
from tests.generation.server import Answer, completion, serving

ASKED = Request("p", Sampling(0.0, 1.0, 20))


class Fact(BaseModel):
    name: str


def echo(request: Request) -> str | Unanswered:
    return Unanswered("busy") if "busy" in request.prompt else f"re: {request.prompt}"


def remembered(folder: Path, model: ScriptedChat | None = None, identity: str = "m") -> Remembered:
    return Remembered(model or ScriptedChat(echo), folder / "replies.sqlite", identity)


def ask(model: Remembered, *prompts: str) -> list[Reply | Unanswered]:
    return list(model.complete(replace(ASKED, prompt=prompt) for prompt in prompts))


def test_a_second_run_asks_only_what_is_new(tmp_path: Path) -> None:
    first = ask(remembered(tmp_path), "a", "b", "c")
    model = ScriptedChat(["re: new"])
    again = remembered(tmp_path, model)
    assert ask(again, "b", "new", "a", "c") == [first[1], Reply("re: new", Finish.FINISHED), first[0], first[2]]
    assert [request.prompt for request in model.requests] == ["new"]
    assert again.counts() == {"asked": 1, "remembered": 3, "unanswered": 0}


def test_text_and_finish_are_kept_as_they_were(tmp_path: Path) -> None:
    strange = Reply("é 世 🙂 \x00 '\"\n", Finish.TRUNCATED)
    ask(remembered(tmp_path, ScriptedChat([strange])), "p")
    assert ask(remembered(tmp_path, ScriptedChat([])), "p") == [strange]


def test_unanswered_is_asked_again_in_the_next_run_but_not_in_this_one(tmp_path: Path) -> None:
    model = ScriptedChat([Unanswered("busy"), "b"])
    assert ask(remembered(tmp_path, model), "a", "a", "b", "a") == [
        Unanswered("busy"), Unanswered("busy"), Reply("b", Finish.FINISHED), Unanswered("busy"),
    ]  # fmt: skip
    assert [request.prompt for request in model.requests] == ["a", "b"]
    assert ask(remembered(tmp_path, ScriptedChat(["a"])), "a") == [Reply("a", Finish.FINISHED)]


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, prompt="q"),
        replace(ASKED, seed=1),
        replace(ASKED, schema=Fact),
        replace(ASKED, sampling=Sampling(0.5, 1.0, 20)),
        replace(ASKED, sampling=Sampling(0.0, 1.0, 21)),
    ],
)
def test_a_request_that_differs_anywhere_is_another(tmp_path: Path, other: Request) -> None:
    model = ScriptedChat(["one", "two"])
    assert len({str(reply) for reply in remembered(tmp_path, model).complete([ASKED, other, ASKED, other])}) == 2
    assert model.requests == [ASKED, other]


def test_another_model_shares_nothing(tmp_path: Path) -> None:
    ask(remembered(tmp_path), "a")
    model = ScriptedChat(["mine"])
    assert ask(remembered(tmp_path, model, identity="n"), "a") == [Reply("mine", Finish.FINISHED)]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["a", "b", "c", "d", "busy1", "busy2"]), max_size=30), st.integers(1, 4))
def test_replies_keep_the_order_of_any_stream(tmp_path: Path, prompts: list[str], ahead: int) -> None:
    identity = str(uuid4())  # a memory of its own for every example
    ask(remembered(tmp_path, identity=identity), "b", "d")
    model = ScriptedChat(echo)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "AHEAD", ahead)  # long runs of remembered requests, in short
        replies = ask(remembered(tmp_path, model, identity), *prompts)
    assert replies == [
        Unanswered("busy") if "busy" in prompt else Reply(f"re: {prompt}", Finish.FINISHED) for prompt in prompts
    ]
    asked = Counter(request.prompt for request in model.requests)
    assert not asked.keys() & {"b", "d"}
    assert all(number == 1 for prompt, number in asked.items() if "busy" not in prompt)


def test_a_stream_is_drawn_as_it_is_answered(tmp_path: Path) -> None:
    ask(remembered(tmp_path), *(f"p{n}" for n in range(0, 300, 2)))
    drawn = 0

    def stream() -> Iterator[Request]:
        nonlocal drawn
        for n in range(300):
            drawn += 1
            yield replace(ASKED, prompt=f"p{n}")

    for number, reply in enumerate(remembered(tmp_path).complete(stream())):
        assert reply == Reply(f"re: p{number}", Finish.FINISHED)
        assert drawn <= number + 3


def test_a_model_is_not_called_for_nothing(tmp_path: Path) -> None:
    class Dear(ScriptedChat):
        def complete(self, requests):
            raise AssertionError("called")

    ask(remembered(tmp_path), "a", "b")
    assert len(ask(remembered(tmp_path, Dear([])), "a", "b", "a")) == 3


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "replies.sqlite").write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
    with pytest.raises(InputError, match=r"replies\.sqlite"):
        remembered(tmp_path)


def test_a_killed_run_asks_nothing_twice_but_what_was_under_way(tmp_path: Path) -> None:
    """40 requests, 4 at a time. The first of all hangs, so everything waits behind it when the kill comes."""
    answered: Counter[str] = Counter()
    lock = threading.Lock()
    ready, release = threading.Event(), threading.Event()

    def script(number: int, body: dict) -> Answer:
        prompt = body["messages"][0]["content"]
        if prompt == "p0":
            release.wait(30)
        with lock:
            answered[prompt] += 1
            if len(answered) == 10:
                ready.set()
        return completion(f"re: {prompt}")

    with serving(script) as server:
        command = [sys.executable, "-m", "tests.generation.journal_run", server.url, str(tmp_path), "40"]
        process = subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE)
        assert ready.wait(60)
        process.send_signal(signal.SIGKILL)
        out, _ = process.communicate()
        assert out == b"" and process.returncode == -signal.SIGKILL
        release.set()
        rerun = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=True)
    assert rerun.stdout.splitlines() == [f"re: p{n}" for n in range(40)]
    asked = Counter(server.prompts)
    assert set(asked) == {f"p{n}" for n in range(40)}
    twice = {prompt for prompt, number in asked.items() if number > 1}
    assert "p0" in twice and len(twice) <= 4 and max(asked.values()) == 2
