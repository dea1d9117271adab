"""HTML: the text a reader sees, block by block, and tables with their spans filled."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks.corpus.formats.base import Block, Extract, Part, grid
from tasks.corpus.formats.decoding import decode_file
from tasks.errors import InputError

_CHARSET = re.compile(rb"""<(?:meta|\?xml)\b[^>]*?\b(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
HIDDEN = frozenset("script style noscript template head svg math iframe object canvas select button".split())
LINES = frozenset(
    "address article aside blockquote body br dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 "
    "h5 h6 header hr li main nav ol p pre section summary table td th tr ul".split()
)
PARAGRAPHS = frozenset("article blockquote h1 h2 h3 h4 h5 h6 p pre section table ul ol dl".split())
MAX_SPAN = 1000  # columns or rows, as in the standard


def read_html(path: Path) -> Extract:
    """One part; the page's title is its first line.

    Raises:
        InputError: there is no text in it, or it is nested too deeply.
    """
    from lxml import html

    decoded = decode_file(path, _CHARSET)
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    root = html.document_fromstring(decoded.text.encode(), parser=parser)
    if any("depth" in problem.message for problem in parser.error_log):  # what lies deeper is gone
        raise InputError("its HTML is nested too deeply to read")
    title = " ".join((root.findtext(".//title") or "").split())
    blocks = [*([title] if title else []), *_blocks(root)]
    if not blocks:
        raise InputError("no text in its HTML")
    return Extract(
        (Part(tuple(blocks)),),
        encoding=decoded.encoding,
        remarks=decoded.remarks,
        replaced=decoded.replaced,
        removed=decoded.removed,
        breaks=decoded.breaks,
    )


def _blocks(root: Any) -> Iterator[Block]:
    """Text up to each table that holds data, the table, and so on."""
    words: list[str] = []
    for piece in _pieces(root):
        if isinstance(piece, str):
            words.append(piece)
            continue
        yield from filter(None, [_flow(words)])
        words = []
        yield grid(_cells(piece))
    yield from filter(None, [_flow(words)])


def _flow(pieces: list[str]) -> str:
    """Join what belongs to a line; "\\n" are the breaks that tags make."""
    lines = [line.strip() for line in "".join(pieces).split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _pieces(root: Any) -> Iterator[Any]:
    """Texts, breaks and data tables in the order of the page. No recursion: pages nest deeply."""
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            yield node
            continue
        tag = node.tag if isinstance(node.tag, str) else ""
        if tag in HIDDEN or not tag:
            continue
        if tag == "table" and _holds_data(node):
            yield node
            continue
        edge = "\n\n" if tag in PARAGRAPHS else "\n" if tag in LINES else ""
        inside: list[Any] = [edge, _text(node.text, tag)]
        for child in node:
            inside += [child, _text(child.tail, tag)]
        stack += reversed([*inside, edge])


def _text(text: str | None, tag: str) -> str:
    return (text or "") if tag == "pre" else re.sub(r"\s+", " ", text or "")


def _holds_data(table: Any) -> bool:
    """Not a layout: no table inside, and two lines of two cells at least."""
    if next(table.iterdescendants("table"), None) is not None:
        return False
    return sum(len(line.findall("td") + line.findall("th")) > 1 for line in table.iter("tr")) > 1


def _cells(table: Any) -> list[tuple[str, ...]]:
    """Lines of cells; a cell that spans several repeats its text in each."""
    below: dict[int, tuple[int, str]] = {}  # column → lines still to fill, text
    lines = []
    for tr in table.iter("tr"):
        line: list[str] = []
        for cell in tr.iterchildren("td", "th"):
            _fill(line, below)
            text = _flow(list(_pieces(cell))).replace("\n", " ")
            wide, high = _span(cell, "colspan"), _span(cell, "rowspan")
            for _ in range(wide):
                if high > 1:
                    below[len(line)] = (high - 1, text)
                line.append(text)
        _fill(line, below)
        lines.append(tuple(line))
    return lines


def _fill(line: list[str], below: dict[int, tuple[int, str]]) -> None:
    while len(line) in below:
        left, text = below.pop(len(line))
        if left > 1:
            below[len(line)] = (left - 1, text)
        line.append(text)


def _span(cell: Any, name: str) -> int:
    value = str(cell.get(name, "1")).strip()
    return min(max(1, int(value)), MAX_SPAN) if value.isascii() and value.isdigit() and len(value) < 9 else 1
