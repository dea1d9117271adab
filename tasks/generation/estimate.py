"""Tokens of a text for a model whose tokenizer is not at hand."""

import re

PIECES = re.compile(
    r"(?P<rare>[A-Z]{2,}|[A-Z][a-z]{7,})|(?P<word>[A-Za-z][a-z]*)|(?P<other>[^\x00-\x7f]+)"
    r"|[ \t\r\n]{2,}|[\t\r\n]| (?=\d)|[^ ]"
)
LETTERS = {"rare": 2, "word": 3}  # in one token; common words are one, names and capitals are cut small
BYTES = 2  # of other scripts in one token; a Chinese character has 3


def estimated_tokens(text: str) -> int:
    """As many as today's tokenizers make of prose, names, tables or code, or more: an upper estimate in practice.

    Words count a third of their letters, rounded up, long names and words of capitals half; digits, the space before
    them, signs, line ends and indents count one each; other scripts half their bytes, so no Chinese character is free.
    Random letters, and scripts that a tokenizer does not know at all, can take somewhat more.
    """
    return sum(_tokens(piece.lastgroup, piece.group()) for piece in PIECES.finditer(text))


def _tokens(kind: str | None, piece: str) -> int:
    if kind == "other":
        return -(-len(piece.encode("utf-8", "surrogatepass")) // BYTES)
    return -(-len(piece) // LETTERS[kind]) if kind else 1
