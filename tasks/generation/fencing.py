"""Text from outside inside a prompt, between marks that it cannot contain."""

from hashlib import sha256
from itertools import count

MARK_LENGTH = 8  # hexadecimal digits; few tokens, and a text that holds its own mark is given another


def fenced(text: str, label: str) -> str:
    """`text` between an opening and a closing line that bear a mark derived from it and absent from it.

    Whoever wrote the text cannot close the fence early: the mark depends on every character of the text. The same
    text gets the same mark, so equal prompts stay equal.
    """
    mark = next(mark for number in count() if (mark := _mark(text, number)) not in text)
    return f"<{label} {mark}>\n{text}\n</{label} {mark}>"


def _mark(text: str, number: int) -> str:
    return sha256(f"{number}:{text}".encode("utf-8", "surrogatepass")).hexdigest()[:MARK_LENGTH]
