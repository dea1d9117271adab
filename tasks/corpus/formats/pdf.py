"""PDF: the text of its pages."""

from pathlib import Path

from tasks.corpus.formats.base import Extract, Part
from tasks.errors import InputError


def read_pdf(path: Path) -> Extract:
    """One part; pages without text are remarked.

    Raises:
        InputError: it needs a password, or has no text at all.
    """
    from pypdf import PdfReader

    with PdfReader(path) as pdf:
        if pdf.is_encrypted and not pdf.decrypt(""):
            raise InputError("encrypted PDF; save it without a password")
        pages = [page.extract_text().strip() for page in pdf.pages]
    empty = [number for number, page in enumerate(pages, 1) if not page]
    if len(empty) == len(pages):
        raise InputError(f"no text on its {len(pages)} page(s): scanned? run a text recognition over it")
    remarks = (f"{len(empty)} of {len(pages)} pages hold no text, first page {empty[0]}",) if empty else ()
    return Extract((Part(("\n\n".join(page for page in pages if page),)),), remarks=remarks)
