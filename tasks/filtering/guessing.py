"""What an answer is worth when nothing was understood: the score that guessing earns on a question.

Some guessers see the item and name any candidate of the gold answer's kind (`guess_rate`); theirs is the baseline
beside every score. Others never read, but know how answers are distributed in a domain (`answer_shares`); together
they give the chance level of the grounding check. What those who never read are right on more often than luck allows
says nothing about reading and is dropped (`guessable`).
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from tasks.corpus.grammar import LETTERS, rows, statements
from tasks.filtering.contamination import answer_texts, digest
from tasks.records import AnswerKind, Domain, Item, Question
from tasks.rewards.normalise import normalise
from tasks.rewards.numbers import parse_number

HALF = 0.5  # of yes and no; and an answer that is right more often than all others together needs no document
DEVIATIONS = 2.33  # of a normal distribution: 1 % of pure guessers are right more often
AnswerKey = tuple[Domain, tuple[str, ...]]
_NUMBER = re.compile(r"(?<![\w.,])-?\d+(?:[.,]\d+)*")
_NAME = re.compile(  # without a common word that only starts the sentence
    r"\b(?!(?:An?|The|In|On|At|Then|When|It|He|She|They|This|That)\b)[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*"
)
_WORD = re.compile(r"[^\W\d_]{2,}")


def guess_rate(item: Item) -> float:
    """Expected score in 0..1 of a guess by someone who sees the item without understanding it.

    Multiple choice: 1 / options; yes or no: a half. Otherwise the gold answer's share among the candidates of its
    kind that occur in the documents, each occurrence once: values that stand in the same place of a sentence or table
    where the gold answer stands, else all numbers, names or words. A gold answer that is not in the documents
    (a sum) gives 0, as do lists of several elements and empty lists.
    """
    question = item.question
    if question.answer_kind is AnswerKind.LETTER:
        return 1 / len(question.options or LETTERS)
    if question.answer_kind is AnswerKind.YES_NO:
        return HALF
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


def guessable(questions: Sequence[Question]) -> frozenset[str]:
    """Ids of the questions to drop because no reading is needed for them.

    These are questions that name their own answer and nothing else it could be; and of each split and domain the
    surplus that makes a simple guesser better than luck: one that takes the single longest option, one that takes the
    most frequent letter (luck: 1 / options), one that gives the most frequent answer (allowed: half of the open
    questions). Only the surplus goes, chosen by a hash of the ids: without any of them the opposite guess would win.
    """
    groups: dict[tuple[str, Domain], list[Question]] = defaultdict(list)
    for question in questions:
        groups[question.split, question.domain].append(question)
    dropped = {question.id for question in questions if names_its_answer(question)}
    for group in groups.values():
        choices = [question for question in group if question.options]
        letters = [question for question in group if question.answer_kind is AnswerKind.LETTER]
        others = [question for question in group if question.answer_kind is not AnswerKind.LETTER]
        dropped |= _surplus([one for one in choices if _is_longest(one)], [1 / len(one.options) for one in choices])
        dropped |= _surplus(_usual(letters), [1 / len(one.options or LETTERS) for one in letters])
        dropped |= _surplus(_usual(others), [HALF] * len(others))
    return frozenset(dropped)


def names_its_answer(question: Question) -> bool:
    """Whether the answer stands in the question, and no other option or name does."""
    asked = f" {normalise(question.question)} "
    if question.answer_kind is AnswerKind.LETTER:
        candidates = question.options
    elif question.answer_kind is AnswerKind.TEXT:
        after_first = question.question.partition(" ")[2]  # the first word's capital makes no name
        candidates = (*_NAME.findall(after_first), *question.gold)
    else:
        return False
    named = {text for text in map(normalise, candidates) if text and f" {text} " in asked}
    return named == {normalise(text) for text in answer_texts(question)}


def _is_longest(question: Question) -> bool:
    gold = len(answer_texts(question)[0])
    return [len(option) for option in question.options if len(option) >= gold] == [gold]


def _usual(questions: Sequence[Question]) -> list[Question]:
    """Those with the most frequent gold answer, the first of equally frequent ones."""
    counts = Counter(_answer_key(question) for question in questions)
    return [question for question in questions if _answer_key(question) == counts.most_common(1)[0][0]]


def _surplus(right: Sequence[Question], chances: Sequence[float]) -> frozenset[str]:
    """How many more a guesser is right on than luck explains, as ids; `chances` are those of all that were guessed."""
    expected = sum(chances)
    allowed = expected + DEVIATIONS * math.sqrt(sum(chance * (1 - chance) for chance in chances))
    ids = sorted((question.id for question in right), key=digest)
    return frozenset(ids[math.floor(allowed) :])


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
