"""The lenient score: whether the gold answer stands in the answer, in whole words. Logged, never trained on.

QwenLong-L1's rule (arXiv 2505.17667), made safe: it knows no containment the other way round, and no empty gold answer.
Beside the strict reward it shows what strictness costs, and a policy that learns to name everything: the curves part.
"""

import re

from tasks.records import AnswerKind, Finish
from tasks.rewards.extraction import extract_answer, visible
from tasks.rewards.normalise import normalise
from tasks.rewards.rules import LONGEST_ANSWER, Asked, check, reward_of

_CURRENCY = re.compile("[$€£¥]")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")  # scripts without spaces: each character is a word
_OR = frozenset({"or", "或"})


def lenient_score(reply: str, finish: Finish, question: Asked) -> float | None:
    """1 if all gold answers stand in what the reply states, else 0; None where there is nothing to look for.

    A reply that states no answer is read from the end of its reasoning on, its last `LONGEST_ANSWER` characters. An
    answer beside "or" does not count. An option's letter may be any word's, so letters are scored strictly. None are:
    code, no gold answer (an empty list, too), and one without words: it would stand everywhere.
    """
    if question.answer_kind is AnswerKind.LETTER:
        return reward_of(check(reply, finish, question))
    golds = [_words(gold) for gold in question.gold]
    if question.answer_kind is AnswerKind.CODE or not golds or not all(golds):
        return None
    answer = extract_answer(reply, finish)
    said = _words((visible(reply, finish) or "" if answer is None else answer)[-LONGEST_ANSWER:])
    return float(all(_stands_in(gold, said) for gold in golds))


def _words(text: str) -> list[str]:
    return _UNSPACED.sub(r" \g<0> ", normalise(_CURRENCY.sub(" ", text))).split()


def _stands_in(gold: list[str], said: list[str]) -> bool:
    size = len(gold)
    places = (place for place in range(len(said) - size + 1) if said[place : place + size] == gold)
    return any(
        _OR.isdisjoint(said[max(0, place - 1) : place + size + 1]) or not _OR.isdisjoint(gold) for place in places
    )
