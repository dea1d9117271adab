"""Small real files of the formats that are read, made by hand or by the formats' own libraries."""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tasks.corpus.readers import FolderReading, SourceFile, read_folder


def pdf_bytes(pages: Sequence[str]) -> bytes:
    """A PDF with a line of text a page; an empty string is a page without text, as scans are."""
    streams = [f"BT /F1 12 Tf 72 700 Td ({page}) Tj ET" if page else "0 0 100 100 re f" for page in pages]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, stream in enumerate(streams):
        content = 5 + 2 * number
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    body, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    return f"{body}{end}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n".encode()


def encrypted_pdf(path: Path, password: str) -> None:
    """Opens without a password when that is empty."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf_bytes(["The capital of France is Paris."]))))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="AES-256")
    writer.write(path)


def zip_bytes(**members: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target.getvalue()


def read_all(folder: Path | str) -> tuple[FolderReading, list[SourceFile]]:
    """Read a source into memory."""
    kept: dict[str, SourceFile] = {}

    def keep(source: SourceFile) -> str | None:
        earlier = kept.setdefault(source.text, source)
        return None if earlier is source else earlier.path

    reading = read_folder(folder, keep)
    return reading, list(kept.values())
