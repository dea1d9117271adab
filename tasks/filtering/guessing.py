"""What an answer is worth when nothing was understood: the score that guessing earns on a question.

Two guessers. One sees the item and names any candidate of the gold answer's kind (`guess_rate`); it is the
baseline beside every score. The other never reads, but knows how answers are distributed in a domain
(`answer_shares`); together they give the chance level of the grounding check.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from tasks.corpus.grammar import LETTERS, rows, statements
from tasks.records import AnswerKind, Domain, Item, Question
from tasks.rewards.normalise import normalise
from tasks.rewards.numbers import parse_number

AnswerKey = tuple[Domain, tuple[str, ...]]
_NUMBER = re.compile(r"(?<![\w.,])-?\d+(?:[.,]\d+)*")
_NAME = re.compile(  # without a common word that only starts the sentence
    r"\b(?!(?:An?|The|In|On|At|Then|When|It|He|She|They|This|That)\b)[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*"
)
_WORD = re.compile(r"[^\W\d_]{2,}")


def guess_rate(item: Item) -> float:
    """Expected score in 0..1 of a guess by someone who sees the item without understanding it.

    Multiple choice: 1 / options. Otherwise the gold answer's share among the candidates of its kind that
    occur in the documents, each occurrence once: values that stand in the same place of a sentence or table
    where the gold answer stands, else all numbers, names or words. A gold answer that is not in the documents
    (a sum) gives 0, as do lists of several elements and empty lists.
    """
    question = item.question
    if question.answer_kind is AnswerKind.LETTER:
        return 1 / len(question.options or LETTERS)
    if len(question.gold) != 1:
        return 0.0
    gold = normalise(question.gold[0])
    found = Counter(normalise(candidate) for candidate in _candidates(item.documents, question.gold[0]))
    return found[gold] / found.total() if found.total() else 0.0


def answer_shares(questions: Sequence[Question]) -> Mapping[str, float]:
    """Per question id, the share of the *other* questions of its domain that have the same gold answer.

    Letters give 0 (their chance level is 1 / options), as does a domain's only question.
    """
    open_ended = [question for question in questions if question.answer_kind is not AnswerKind.LETTER]
    answers = Counter(_answer_key(question) for question in open_ended)
    sizes = Counter(question.domain for question in open_ended)
    return {
        question.id: (answers[_answer_key(question)] - 1) / max(1, sizes[question.domain] - 1)
        for question in open_ended
    }


def _answer_key(question: Question) -> AnswerKey:
    return question.domain, tuple(sorted(normalise(gold) for gold in question.gold))


def _candidates(documents: Sequence[str], gold: str) -> list[str]:
    """Everything in the documents that the gold answer could be mistaken for, repetitions included."""
    wanted = normalise(gold)
    alike = [
        name
        for place in _places(documents).values()
        if any(normalise(name) == wanted for name in place)
        for name in place
    ]
    if alike:
        return alike
    word = _NAME if gold[:1].isupper() else _WORD
    pattern = _NUMBER if parse_number(gold) is not None else word
    return [match for text in documents for match in pattern.findall(text)]


def _places(documents: Sequence[str]) -> Mapping[tuple[str, str], list[str]]:
    """Names and values by where they stand: subject or value of which relation or measure."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for text in documents:
        for statement in statements(text):
            places["subject", statement.relation].append(statement.subject)
            places["value", statement.relation].append(statement.value)
        for subject, measure, count in rows(text):
            places["subject", measure].append(subject)
            places["value", measure].append(str(count))
    return places
