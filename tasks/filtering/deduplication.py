"""Near-duplicate questions: compared exactly, word by word, among those that could be duplicates at all.

Why no MinHash: questions are short and share templates ("What is the capital of …?"), so a dozen shingles estimate
their similarity too roughly, and the words that tell them apart are few. Two questions with different answers, about
different names or on different documents are never duplicates; grouping by these leaves groups small enough to compare
every pair.
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from rapidfuzz.distance import Indel

from tasks.records import AnswerKind, Question
from tasks.rewards.normalise import normalise

_SPECIFIC = re.compile(r"(?<!^)\b(?:[A-Z]|\w*\d)[\w'’-]*")  # names and numbers; the first word is neither
Key = tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def near_duplicates(questions: Sequence[Question], similarity: float) -> dict[str, str]:
    """Map each question to drop to the earlier one that it repeats (ids).

    Two questions are near-duplicates when domain, evidence, gold answer (option text for letters), names and
    numbers are the same and their words are at least `similarity` alike: 2 · common subsequence / total words,
    in 0..1. The first of a chain stays: a question is compared with kept ones only.
    """
    kept: dict[Key, list[tuple[str, list[str]]]] = defaultdict(list)
    repeats: dict[str, str] = {}
    for question in questions:
        words = normalise(question.question).split()
        group = kept[_key(question)]
        original = next(
            (name for name, other in group if Indel.normalized_similarity(words, other) >= similarity), None
        )
        if original is None:
            group.append((question.id, words))
        else:
            repeats[question.id] = original
    return repeats


def _key(question: Question) -> Key:
    gold = question.gold
    if question.answer_kind is AnswerKind.LETTER and question.options:
        gold = (question.options[ord(question.gold[0]) - ord("A")],)
    names = _SPECIFIC.findall(question.question)
    answers = tuple(sorted(normalise(text) for text in gold))
    return question.domain, tuple(sorted(question.document_ids)), answers, tuple(sorted(names))
