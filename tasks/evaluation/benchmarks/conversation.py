"""Conversations of several turns as token ids, by a model's own chat template."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from tasks.errors import CheckpointError
from tasks.tokenization import ChatTokenizer

Role = Literal["system", "user", "assistant", "tool"]
_PLACE = re.compile(r"7(CONTENT|REASONING)x(\d+)x7")  # stands for a text while the template is rendered


@dataclass(frozen=True)
class Message:
    """A turn of a conversation. `reasoning` is the assistant's, without its tags; `call` what a tool replies to."""

    role: Role
    content: str
    reasoning: str = ""
    call: str = ""


class Conversations:
    """Renders conversations for one model. No text in them can become a control token.

    A template without a tool role is given the tools' replies as a user's turn, one without a system role the system's
    text at the head of the first user's turn: as BFCL does (model_handler/utils.py: format_execution_results_prompting,
    convert_system_prompt_into_user_prompt).
    """

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self._tokenizer = tokenizer
        asked = Message("user", "q")
        self._has_system = self._shows(Message("system", "s"), asked)
        self._has_tool = self._shows(asked, Message("assistant", "f()"), Message("tool", "r"))

    def ids(self, messages: Sequence[Message]) -> list[int]:
        """Ids of a conversation with the generation prompt at its end. Whether reasoning is shown, the template says.

        Raises:
            CheckpointError: the template drops a message or refuses the roles as they come.
        """
        messages = self._as_known(messages)
        rendered = self._rendered(messages)
        if not _holds_all(rendered, messages):
            raise CheckpointError("the chat template drops turns of a conversation; use one for several turns")
        return self._encoded(rendered, messages)

    def _as_known(self, messages: Sequence[Message]) -> list[Message]:
        if not self._has_tool:
            messages = _tools_as_user(messages)
        first, *rest = messages
        if first.role != "system" or self._has_system:
            return list(messages)
        return [replace(rest[0], content=f"{first.content}\n\n{rest[0].content}"), *rest[1:]]

    def _shows(self, *messages: Message) -> bool:
        try:
            return _holds_all(self._rendered(messages), messages)
        except CheckpointError:
            return False

    def _rendered(self, messages: Sequence[Message]) -> str:
        from jinja2 import TemplateError

        turns = [_placed(index, message) for index, message in enumerate(messages)]
        try:
            return self._tokenizer.render(turns)
        except TemplateError as error:
            raise CheckpointError(f"the chat template refuses a conversation ({error}); use another model") from error

    def _encoded(self, rendered: str, messages: Sequence[Message]) -> list[int]:
        ids: list[int] = []
        end = 0
        for place in _PLACE.finditer(rendered):
            message = messages[int(place[2])]
            text = message.content if place[1] == "CONTENT" else message.reasoning
            ids += [*self._tokenizer.encode_reply(rendered[end : place.start()]), *self._tokenizer.encode(text)]
            end = place.end()
        return ids + self._tokenizer.encode_reply(rendered[end:])


def _placed(index: int, message: Message) -> dict[str, str]:
    turn = {"role": message.role, "content": f"7CONTENTx{index}x7"}
    if message.reasoning:
        turn["reasoning_content"] = f"7REASONINGx{index}x7"
    return turn


def _holds_all(rendered: str, messages: Sequence[Message]) -> bool:
    contents = [int(place[2]) for place in _PLACE.finditer(rendered) if place[1] == "CONTENT"]
    return contents == list(range(len(messages)))


def _tools_as_user(messages: Sequence[Message]) -> list[Message]:
    merged: list[Message] = []
    for is_tool, run in groupby(messages, key=lambda message: message.role == "tool"):
        if is_tool:
            replies = [{"role": "tool", "name": message.call, "content": message.content} for message in run]
            merged.append(Message("user", repr(replies)))
        else:
            merged += run
    return merged
