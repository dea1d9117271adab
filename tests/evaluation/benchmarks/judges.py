"""A judge that decides by a function, through the real prompts and parsers."""

from collections.abc import Callable

from tasks.generation.chat import Request, Unanswered
from tasks.generation.scripted import ScriptedChat
from tasks.rewards.judge import Judge


def judge_that(decides: Callable[[str], str | Unanswered]) -> tuple[Judge, list[Request]]:
    """A judge whose model replies with `decides(prompt)`, and all requests that reach it."""
    chat = ScriptedChat(lambda request: decides(request.prompt))
    return Judge(chat, alarm_share=1.0), chat.requests
