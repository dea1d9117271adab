"""Questions on documents, among documents that do not answer them (RULER, qa.py), from files of the user's."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.artifacts import read_items
from tasks.errors import InputError
from tasks.evaluation.benchmarks.files import Row
from tasks.evaluation.benchmarks.ruler.samples import Puzzle, Sample, cycled

TEMPLATE = (
    "Answer the question based on the given documents. Only give me the answer and do not output any other words.\n\n"
    "The following are given documents.\n\n{context}\n\nAnswer the question based on the given documents. Only give me "
    "the answer and do not output any other words.\n\nQuestion: {question}"
)
PREFIX = " Answer:"
DOCUMENT = "Document {number}:\n{text}"
SQUAD, HOTPOT, OWN = "qa_1", "qa_2", "qa_own"


@dataclass(frozen=True)
class Asked:
    """A question with its accepted answers. `evidence` must be shown; `near` are other texts of the same article."""

    question: str
    answers: tuple[str, ...]
    evidence: tuple[str, ...]
    near: tuple[str, ...] = ()


@dataclass(frozen=True)
class Questions:
    """All questions of a file, and all its documents. `name` is RULER's name of the subtask, or `OWN`."""

    name: str
    asked: tuple[Asked, ...]
    documents: tuple[str, ...]


def asking_puzzle(questions: Questions, index: int, rng: random.Random) -> Puzzle:
    """A puzzle whose size counts documents: evidence, then those near it, then any, from the first again at the end."""
    asked = questions.asked[index % len(questions.asked)]
    shown = {*asked.evidence, *asked.near}
    rest = [text for text in questions.documents if text not in shown]
    others = [*rng.sample(asked.near, len(asked.near)), *rng.sample(rest, len(rest))]
    if not others:
        raise InputError("the file has no document beside a question's own; give one with more documents")
    order = rng.getrandbits(64)

    def at(size: int) -> Sample:
        places = random.Random(order)
        documents = [*asked.evidence, *cycled(others, size - len(asked.evidence))]
        placed = sorted(((places.random(), text) for text in documents), key=lambda pair: pair[0])
        context = "\n\n".join(DOCUMENT.format(number=number, text=text) for number, (_, text) in enumerate(placed, 1))
        return Sample(TEMPLATE.format(context=context, question=asked.question), PREFIX, asked.answers)

    return Puzzle(len(asked.evidence), at)


def read_questions(path: Path) -> Questions:
    """Read SQuAD's JSON (qa_1), HotpotQA's (qa_2), or questions of this pipeline on its documents (parquet).

    Raises:
        InputError: the file is none of these, or holds no question.
    """
    if path.suffix == ".parquet":
        name, asked = OWN, _own(path)
    else:
        content = _json(path)
        name, asked = (SQUAD, _squad(content, path)) if isinstance(content, dict) else (HOTPOT, _hotpot(content, path))
    found = tuple(asked)
    if not found:
        raise InputError(f"{path} holds no question with an answer; give SQuAD's or HotpotQA's file, or data of a run")
    documents = {text: None for question in found for text in (*question.evidence, *question.near)}
    return Questions(name, found, tuple(documents))


def _own(path: Path) -> Iterator[Asked]:
    """Questions with one answer in words or numbers; what an item shows beside its evidence is near it."""
    for item in read_items(path):
        evidence = {
            text
            for name, text in zip(item.document_ids, item.documents, strict=True)
            if name in item.question.document_ids
        }
        if len(item.question.gold) == 1 and not item.question.options and evidence:
            near = tuple(text for text in item.documents if text not in evidence)
            yield Asked(item.question.question, item.question.gold, tuple(sorted(evidence)), near)


def _squad(content: object, path: Path) -> Iterator[Asked]:
    for article in Row({"file": [content]}, str(path)).rows("file")[0].rows("data"):
        paragraphs = article.rows("paragraphs")
        texts = tuple(dict.fromkeys(paragraph.text("context") for paragraph in paragraphs))
        for paragraph in paragraphs:
            context = paragraph.text("context")
            near = tuple(text for text in texts if text != context)
            for question in paragraph.rows("qas"):
                answers = tuple(dict.fromkeys(answer.text("text") for answer in question.rows("answers")))
                if answers:  # SQuAD 2.0 has none where the text does not say
                    yield Asked(question.text("question"), answers, (context,), near)


def _hotpot(content: object, path: Path) -> Iterator[Asked]:
    for row in Row({"file": content}, str(path)).rows("file"):
        documents = row.value("context")
        try:
            texts = tuple(f"{title}\n{''.join(sentences)}" for title, sentences in documents)  # type: ignore[attr-defined]
        except (TypeError, ValueError) as error:
            raise row.error(f"has a context that is no list of titles with sentences ({error})") from error
        yield Asked(row.text("question"), (row.text("answer"),), texts)


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no readable JSON ({error}); give SQuAD's or HotpotQA's file") from error
