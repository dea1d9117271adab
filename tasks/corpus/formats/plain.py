"""Text, Markdown and source code: read as they are."""

from pathlib import Path

from tasks.corpus.formats.base import Extract, Part
from tasks.corpus.formats.decoding import decode_file


def read_plain(path: Path) -> Extract:
    """One part of text."""
    decoded = decode_file(path)
    return Extract(
        (Part((decoded.text,)),),
        encoding=decoded.encoding,
        remarks=decoded.remarks,
        replaced=decoded.replaced,
        removed=decoded.removed,
        breaks=decoded.breaks,
    )
