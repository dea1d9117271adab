"""Text is cleaned once, where it enters.

What would break a tokenizer or a database later is removed here and counted.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # all but tab and line breaks
_LINE_BREAK = re.compile("\r\n?")
_BORDERS = tuple(re.compile(border) for border in (r"(?<=\n\n)", r"(?<=\n)", r"(?<=[.!?]\s)", r"(?<=\s)"))


@dataclass(frozen=True)
class Cleaned:
    """A clean text; lone surrogates that became U+FFFD, control characters removed, line breaks that became "\\n"."""

    text: str
    replaced: int
    removed: int
    breaks: int = 0


def clean(text: str) -> Cleaned:
    """Make text encodable as UTF-8, free of control characters, with "\\n" as line break and no blank ends.

    Split surrogate pairs are joined into their character; only lone surrogates are replaced.
    """
    joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
    whole, replaced = _SURROGATE.subn("\ufffd", joined)
    lines, breaks = _LINE_BREAK.subn("\n", whole)
    plain, removed = _CONTROL.subn("", lines)
    return Cleaned(plain.strip(), replaced, removed, breaks)


def pieces(text: str, limit: int, count: Callable[[str], int]) -> list[str]:
    """Cut text into pieces of at most `limit` tokens, at the best border that works.

    Borders are, in this order, between paragraphs, lines, sentences, words and characters. A piece's length
    is the sum of its parts' lengths, an upper bound for tokenizers that merge across parts.
    """
    parts = (part.strip() for part in _cut(text, 0, limit, count))
    return [part for part in parts if part]


def _cut(text: str, level: int, limit: int, count: Callable[[str], int]) -> list[str]:
    if count(text) <= limit or len(text) == 1:
        return [text]
    if level == len(_BORDERS):
        middle = len(text) // 2
        return _cut(text[:middle], level, limit, count) + _cut(text[middle:], level, limit, count)
    packed: list[str] = []
    room = 0
    for part in _BORDERS[level].split(text):
        for piece in _cut(part, level + 1, limit, count):
            length = count(piece)
            if packed and length <= room:
                packed[-1] += piece
                room -= length
            else:
                packed.append(piece)
                room = limit - length
    return packed
