"""Answers that say nothing: generative judges approve of them, so they never reach one (arXiv 2507.08794)."""

import re

from tasks.rewards.normalise import normalise

_WORD = re.compile(r"[^\W_]+")
REPEATS = 8  # of the same words and nothing else: a loop, longer than any enumeration of equal things
OPENERS = frozenset(
    normalise(text)
    for text in (
        "Thought process", "Let's solve this problem step by step", "Let's think step by step", "Step 1", "Solution",
        "Let me think", "To solve this problem", "Reasoning", "Explanation", "Answer", "The answer", "Final answer",
        "The answer is", "Okay", "Sure", "First", "解", "解答", "答案", "思考过程", "让我们一步一步地思考", "かいせつ",
        "解説", "Respuesta", "Solución", "Réponse", "Lösung", "Antwort", "Ответ", "Решение",
    )
)  # fmt: skip


def says_something(answer: str, reference: str) -> bool:
    """Whether an answer has content: letters or digits, more than an opener of reasoning, and no loop.

    An opener that stands in the reference may be the answer ("saline solution").
    """
    words = _words(answer)
    said = " ".join(words)
    if not words or _loops(words):
        return False
    return said not in OPENERS or said in " ".join(_words(reference))


def _words(text: str) -> list[str]:
    """Letters and digits of the normal form: "# Answer" is "answer"."""
    return _WORD.findall(normalise(text))


def _loops(words: list[str]) -> bool:
    """Whether a phrase repeats from the first word to the last, at least `REPEATS` times. Linear time."""
    borders = [0] * len(words)  # of each beginning: the longest shorter beginning that it also ends in (Knuth et al.)
    for end in range(1, len(words)):
        border = borders[end - 1]
        while border and words[end] != words[border]:
            border = borders[border - 1]
        borders[end] = border + (words[end] == words[border])
    return len(words) >= REPEATS * (len(words) - borders[-1])
