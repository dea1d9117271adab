"""Real questions for the tiny base model: shuffled worlds of the exam, as curated items."""

import random
from pathlib import Path

from tasks.base_model.exam import draw_exercise
from tasks.prompts import question_prompt
from tasks.records import AnswerKind, Domain, Item, Question
from tasks.tokenization import ChatTokenizer

KINDS = {
    Domain.MULTIPLE_CHOICE: AnswerKind.LETTER,
    Domain.MULTI_HOP: AnswerKind.TEXT,
    Domain.READING_COMPREHENSION: AnswerKind.TEXT,
}


def world_items(model: Path, length: int, count: int) -> list[Item]:
    """`count` items of three domains in turn, with contexts of up to `length` tokens."""
    tokenizer, rng = ChatTokenizer.load(model), random.Random(7)
    return [_item(number, list(KINDS)[number % 3], length, tokenizer, rng) for number in range(count)]


def _item(number: int, domain: Domain, length: int, tokenizer: ChatTokenizer, rng: random.Random) -> Item:
    exercise = draw_exercise(domain, length, tokenizer, rng)
    problem, documents = exercise.problem, exercise.world.documents
    question = Question(
        id=f"q{number}", domain=domain, question=problem.question, gold=(problem.answer,), answer_kind=KINDS[domain],
        options=tuple(problem.options), document_ids=("d0",), split="train", generator="knowledge_graph",
        difficulty=1, provenance={}, seed=0,
    )  # fmt: skip
    return Item(
        question=question,
        documents=documents,
        document_ids=tuple(f"d{place}" for place in range(len(documents))),
        length_bucket=length,
        input_tokens=tokenizer.prompt_length(question_prompt(documents, question)),
    )
