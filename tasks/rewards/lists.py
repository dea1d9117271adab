"""Lists as answers: how one is written, and when two are equal."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from tasks.rewards.normalise import normalise
from tasks.rewards.numbers import parse_gold, same_number

Order = Literal["any", "kept", "set"]
EMPTY_LIST_WORDS = frozenset(
    {"[]", "{}", "()", "∅", "none", "nothing", "empty", "empty list", "empty set", "an empty list", "无", "没有"}
)
LONGEST_LIST = 200  # elements that may differ in spelling
_QUOTED = re.compile(r'"([^"]*)"')
_SEPARATOR = re.compile(r",(?!\d{3}(?!\d))|[、，]|\n")  # a comma before three digits separates thousands
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_LAST_AND = re.compile(r"\s*\band\b\s*|\s+&\s+|\s*和\s*")


def same_list(answer: str, gold: Sequence[str], question: str, order: Order) -> bool:
    """Whether a written list has the gold elements: as a multiset, in the same order, or as a set.

    Elements are compared as numbers where the gold element is one, else as text. "A, B and C" is read both as written
    and with its last "and" as a separator. No gold elements: the answer must say that there are none.
    """
    if not gold:
        return answer.strip(" .").lower() in EMPTY_LIST_WORDS
    elements = _elements(answer)
    split_last = [*elements[:-1], *_split_last_and(elements[-1])] if elements else []
    return any(_same_elements(reading, gold, question, order) for reading in (elements, split_last))


def _elements(answer: str) -> list[str]:
    inner = answer.strip(" .")
    if inner[:1] + inner[-1:] in ("[]", "{}", "()"):
        inner = inner[1:-1]
    quoted = _QUOTED.findall(inner)
    if quoted and not _QUOTED.sub("", inner).strip(" ,;\n"):
        return quoted
    parts = inner.split(";") if ";" in inner else _SEPARATOR.split(inner)
    return [part for part in (_BULLET.sub("", part.strip()) for part in parts) if part]


def _split_last_and(element: str) -> list[str]:
    """ "and C" and "B and C" become [C] and [B, C]."""
    matches = list(_LAST_AND.finditer(element))
    if not matches:
        return [element]
    parts = (element[: matches[-1].start()], element[matches[-1].end() :])
    return [part for part in parts if part]


def _same_elements(answers: Sequence[str], gold: Sequence[str], question: str, order: Order) -> bool:
    if order == "kept":
        same = len(answers) == len(gold)
        return same and all(_same_element(given, wanted, question) for given, wanted in zip(answers, gold, strict=True))
    count = Counter if order == "any" else frozenset
    if count(map(_key, answers)) == count(map(_key, gold)):
        return all(map(normalise, gold))
    if max(len(answers), len(gold)) > LONGEST_LIST or (order == "any" and len(answers) != len(gold)):
        return False
    fits = [[i for i, given in enumerate(answers) if _same_element(given, wanted, question)] for wanted in gold]
    if order == "set":
        return all(fits) and {i for row in fits for i in row} == set(range(len(answers)))
    return _matched(fits)


def _matched(fits: Sequence[Sequence[int]]) -> bool:
    """Whether each gold element has an answer of its own (augmenting paths: rounded numbers may fit several)."""
    taken: dict[int, int] = {}

    def placed(wanted: int, tried: set[int]) -> bool:
        for given in fits[wanted]:
            if given not in tried:
                tried.add(given)
                if given not in taken or placed(taken[given], tried):
                    taken[given] = wanted
                    return True
        return False

    return all(placed(wanted, set()) for wanted in range(len(fits)))


def _key(element: str) -> str:
    return " ".join(element.casefold().split())


def _same_element(answer: str, gold: str, question: str) -> bool:
    if parse_gold(gold) is not None:
        return same_number(answer, gold, question)
    wanted = normalise(gold)
    return wanted != "" and normalise(answer) == wanted
