"""Word documents: paragraphs and tables in their order. Headers, footers and notes are left out."""

from collections.abc import Iterator
from pathlib import Path

from tasks.corpus.formats.archives import check_archive
from tasks.corpus.formats.base import Block, Extract, Part, grid


def read_docx(path: Path) -> Extract:
    """One part.

    Raises:
        InputError: it is no Word document, or unpacks to too much.
    """
    check_archive(path, "word/document.xml")
    return Extract((Part(tuple(_blocks(path))),))


def _blocks(path: Path) -> Iterator[Block]:
    from docx import Document
    from docx.table import Table

    for item in Document(str(path)).iter_inner_content():
        if isinstance(item, Table):
            # merged cells are given once for each place they cover
            yield grid([tuple(cell.text.strip() for cell in line.cells) for line in item.rows])
        elif item.text.strip():
            yield item.text
