"""When two names are the same, and when a text mentions a name."""

import re
from functools import cache

_NOT_WORD = re.compile(r"\W+")


@cache
def key(name: str) -> str:
    """The form under which aliases merge: lower case, single spaces."""
    return " ".join(name.casefold().split())


@cache
def _words(text: str) -> str:
    return f" {_NOT_WORD.sub(' ', text.casefold()).strip()} "


def mentions(text: str, name: str) -> bool:
    """Whether `name` occurs in `text` as whole words: "Niger" is not in "Nigeria".

    A name without word characters never occurs.
    """
    wanted = _words(name)
    return bool(wanted.strip()) and wanted in _words(text)
