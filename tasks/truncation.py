"""Middle truncation: what does not fit is cut from the middle of the documents (QwenLong-L1.5 §5.1).

Applied to the documents before the chat template, without a marker; question and instructions stay whole.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tasks.errors import InputError
from tasks.tokenization import ChatTokenizer


@dataclass(frozen=True)
class FittedDocuments:
    """Documents after truncation: what is left, in order, and the indices of those left untouched."""

    documents: tuple[str, ...]
    kept: frozenset[int]
    cut: bool


def middle_truncate(ids: Sequence[int], limit: int) -> list[int]:
    """The first ⌊limit/2⌋ and the last ⌈limit/2⌉ ids; all if they fit, none if the limit is not positive."""
    return list(ids) if len(ids) <= limit else ends(ids, *split_limit(limit))


def split_limit(limit: int) -> tuple[int, int]:
    """Tokens kept in front and at the back; an odd one goes to the back, as in ids[:L//2] + ids[-L//2:]."""
    limit = max(limit, 0)
    return limit // 2, limit - limit // 2


def ends(ids: Sequence[int], front: int, back: int) -> list[int]:
    """The first `front` and the last `back` ids."""
    return [*ids[:front], *ids[len(ids) - back :]]


def truncate_documents(documents: Sequence[str], limit: int, tokenizer: ChatTokenizer) -> FittedDocuments:
    """Cut the middle of all documents laid end to end: whole ones vanish, those at the borders shrink."""
    return _truncate(documents, [tokenizer.encode(document) for document in documents], limit, tokenizer)


def fit(
    documents: Sequence[str], render: Callable[[Sequence[str]], str], window: int, tokenizer: ChatTokenizer
) -> FittedDocuments:
    """Truncate the documents just enough for the rendered chat prompt to fit into the window.

    Raises:
        InputError: the prompt does not fit even without documents.
    """
    if tokenizer.prompt_length(render(documents)) <= window:
        return FittedDocuments(tuple(documents), frozenset(range(len(documents))), cut=False)
    bare = tokenizer.prompt_length(render(()))
    if bare > window:
        raise InputError(
            f"a question needs {bare} tokens without any document, more than the window of {window}; "
            "shorten it or raise memory.window"
        )
    ids = [tokenizer.encode(document) for document in documents]

    def too_long(limit: int) -> bool:
        return tokenizer.prompt_length(render(_truncate(documents, ids, limit, tokenizer).documents)) > window

    first_too_long = bisect_left(range(window + 1), True, lo=1, key=too_long)
    return _truncate(documents, ids, first_too_long - 1, tokenizer)


def _truncate(
    documents: Sequence[str], ids: Sequence[Sequence[int]], limit: int, tokenizer: ChatTokenizer
) -> FittedDocuments:
    total = sum(len(document) for document in ids)
    if total <= limit:
        return FittedDocuments(tuple(documents), frozenset(range(len(documents))), cut=False)
    head, tail = split_limit(limit)
    left: list[str] = []
    kept: set[int] = set()
    start = 0
    for index, document in enumerate(ids):
        front = max(0, min(len(document), head - start))
        back = max(0, min(len(document), start + len(document) - (total - tail)))
        start += len(document)
        if front + back == len(document):
            left.append(documents[index])
            kept.add(index)
        elif front + back > 0:
            left.append(tokenizer.decode(ends(document, front, back)))
    return FittedDocuments(tuple(left), frozenset(kept), cut=True)
