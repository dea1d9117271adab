"""Puts prompts to a model and reads what it rules; a reply without a verdict is asked for once more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tasks.generation.base import Sampling
from tasks.generation.chat import ChatModel, Reply, Request, Unanswered
from tasks.records import Finish
from tasks.rewards.judging.rulings import Form
from tasks.rewards.judging.tally import Tally

T = TypeVar("T")

REMINDER = (
    "\n\nAn earlier reply to this did not end as asked. Reply with the verdict alone, in the form just described."
)


@dataclass(frozen=True)
class Inquiry(Generic[T]):
    """A prompt and the form of the reply to it."""

    prompt: str
    form: Form[T]


def fits(model: ChatModel, prompt: str) -> bool:
    """Whether the model's context has room for the prompt, the reminder and the longest reply."""
    return model.count(prompt + REMINDER) + model.max_output_tokens <= model.context_tokens


def ask(model: ChatModel, inquiries: Sequence[Inquiry[T]], tally: Tally) -> list[T | Unanswered]:
    """What the model rules, greedily, in order; its form's `unparsed` where it does not say even when asked again.

    Second tries are asked together after the first ones: at temperature 0 only another prompt gives another reply,
    and a batch of them keeps a server busy.
    """
    outcomes = _replies(model, inquiries)
    tally.add("asked", len(inquiries))
    again = [index for index, outcome in enumerate(outcomes) if outcome == inquiries[index].form.unparsed]
    reminded = [Inquiry(inquiries[index].prompt + REMINDER, inquiries[index].form) for index in again]
    tally.add("asked_again", len(again))
    second = _replies(model, reminded)
    for index, outcome in zip(again, second, strict=True):
        outcomes[index] = outcome
        tally.add("unparsed", int(outcome == inquiries[index].form.unparsed))
    return outcomes


def _replies(model: ChatModel, inquiries: Sequence[Inquiry[T]]) -> list[T | Unanswered]:
    if not inquiries:
        return []  # even an empty stream may start workers
    greedy = Sampling(0.0, 1.0, model.max_output_tokens)
    replies = model.complete(Request(inquiry.prompt, greedy) for inquiry in inquiries)
    return [_read(reply, inquiry.form) for reply, inquiry in zip(replies, inquiries, strict=True)]


def _read(reply: Reply | Unanswered, form: Form[T]) -> T | Unanswered:
    if isinstance(reply, Unanswered):
        return reply
    return form.read(reply.text) if reply.finish is Finish.FINISHED else form.unparsed
