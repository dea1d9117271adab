"""Held-out contexts many times longer than the window, for the memory agent and middle truncation."""

import random
from collections import defaultdict
from collections.abc import Callable, Sequence

from tasks.corpus.library import Library
from tasks.prompts import question_prompt
from tasks.records import Domain, Item, Question
from tasks.synthesis.distractors import extend

Count = Callable[[str], int]
FILLED = 0.9  # share of the wanted length that contexts must reach on average


def long_questions(items: Sequence[Item], number: int) -> list[Question]:
    """Up to `number` held-out questions whose evidence is one document, domains in turn, each question once.

    An answer that must be combined from several documents measures how much fits into the memory rather than
    whether the agent finds and keeps a fact, so such questions are left to the full-context table.
    """
    by_domain: dict[Domain, dict[str, Question]] = defaultdict(dict)
    for item in items:
        if len(item.question.document_ids) == 1:
            by_domain[item.question.domain].setdefault(item.question.id, item.question)
    queues = [list(by_domain[domain].values()) for domain in sorted(by_domain)]
    longest = max((len(queue) for queue in queues), default=0)
    in_turn = [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]
    return in_turn[:number]


def long_items(
    questions: Sequence[Question],
    library: Library,
    context_tokens: int,
    prompt_length: Count,
    seed: int,
) -> list[Item]:
    """Extend each question with held-out documents to `context_tokens`.

    Empty when the held-out documents do not reach that far: repeating them would measure something else.
    `prompt_length` counts the tokens of a rendered prompt; cache it, the same documents come up again.
    """
    items = [_long_item(question, library, context_tokens, prompt_length, seed) for question in questions]
    reached = sum(item.input_tokens for item in items)
    return items if reached >= FILLED * context_tokens * len(items) else []


def _long_item(
    question: Question,
    library: Library,
    context_tokens: int,
    prompt_length: Count,
    seed: int,
) -> Item:
    rng = random.Random(f"{seed}/{question.id}/{context_tokens}")
    ids = extend(question, library, context_tokens, prompt_length, rng)
    texts = tuple(library[identifier].text for identifier in ids)
    return Item(
        question=question,
        documents=texts,
        document_ids=tuple(ids),
        length_bucket=context_tokens,
        input_tokens=prompt_length(question_prompt(texts, question)),
    )
