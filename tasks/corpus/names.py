"""When two names are the same, and when a text mentions a name."""

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")

NAMES_KEPT = 1 << 16  # in the cache
TEXTS_KEPT, LONGEST_KEPT = 512, 16_384  # texts in a cache, and signs of each: memory must not grow with the corpus

_NOT_WORD = re.compile(r"\W+")
# Scripts that put no space between words, and Hangul, whose particles stick to their noun: each sign is a word.
_UNSPACED = re.compile(
    r"([\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff])"
)


def folded(text: str) -> str:
    """A text without differences of width, form or case."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


@lru_cache(maxsize=NAMES_KEPT)
def key(name: str) -> str:
    """The form in which names are compared: folded, with single spaces."""
    return " ".join(folded(name).split())


def remembered(compute: Callable[[str], T]) -> Callable[[str], T]:
    """Keep what was computed for the last short texts; long ones cost more memory than time."""
    cached = lru_cache(maxsize=TEXTS_KEPT)(compute)

    @wraps(compute)
    def call(text: str) -> T:
        return cached(text) if len(text) <= LONGEST_KEPT else compute(text)

    return call


@remembered
def words(text: str) -> str:
    """The folded words of a text, each between spaces; a sign of a script without spaces is a word of its own."""
    spaced = _NOT_WORD.sub(" ", _UNSPACED.sub(r" \1 ", folded(text)))
    return f" {' '.join(spaced.split())} "


def mentions(text: str, name: str) -> bool:
    """Whether `name` occurs in `text` as whole words: "Niger" is not in "Nigeria".

    A name without word characters never occurs.
    """
    wanted = words(name)
    return bool(wanted.strip()) and wanted in words(text)
