"""A folder of mixed office files as offices have them, good ones and bad ones, about invented organisations.

`python infra/real_input/office.py FOLDER` writes the same bytes every time. Each organisation has a data sheet, and
many have a profile in prose; what one file leaves out another one says. The last six files are what readers must
survive: unsupported, empty, twice there, broken, full of NUL bytes.
"""

import argparse
import io
import random
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

SEED = 0
YEARS = (2021, 2022, 2023)
NAMES = (
    "Nordsund Harbour Ferries",
    "Brackwater Paper Mills",
    "Ostrelle Glassworks",
    "Tamarin Bay Salt Company",
    "Velden Valley Dairy",
    "Quarrystone Cement",
    "Larkfield Seed Cooperative",
    "Hollowmere Rope Works",
    "Kestrel Point Shipyard",
    "Amberlow Printing House",
    "Silverford Bicycle Factory",
    "Greywater Pump Institute",
    "Mossbank Museum of Clocks",
    "Dunrigg Wool Exchange",
    "Elderwick Brass Foundry",
    "Fennmoor Peat Company",
    "Gullhaven Fishing Fleet",
    "Harrowgate Tile Works",
    "Ivelchester Orchard Union",
    "Jessamy Tea Importers",
    "Kilnsea Lime Kilns",
    "Lantern Hill Observatory",
    "Marrow Creek Sawmill",
    "Netherby Carpet Weavers",
)
PROFILES = 14  # organisations with a profile
SEATS = ("Nordsund", "Brackwater", "Ostrelle", "Velden", "Larkfield", "Dunrigg", "Amberlow")
MONTHS = ("January", "March", "May", "June", "September", "October", "November")
PRODUCTS = ("timber", "paper", "glass", "salt", "milk", "cement", "seed", "rope", "ships", "books", "bicycles", "pumps")
FIXED_DATE = (2024, 1, 2, 0, 0, 0)
WRITTEN = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")  # when, as Office files say


class Saved(Protocol):
    """An Office document of a library."""

    def save(self, target: IO[bytes], /) -> object:
        """Write it."""


@dataclass(frozen=True)
class Organisation:
    """What is known of an organisation. Money in thousands of crowns, a loss is negative."""

    name: str
    seat: str
    founded: str
    product: str
    supplier: str
    staff: int
    revenue: tuple[int, ...]  # one a year
    result: tuple[int, ...]


def organisations() -> list[Organisation]:
    """All of them, from the seed. Everyone's supplier is the next in a shuffled ring."""
    rng = random.Random(SEED)
    ring = rng.sample(NAMES, len(NAMES))
    supplier = dict(zip(ring, ring[1:] + ring[:1], strict=True))
    return [
        Organisation(
            name,
            rng.choice(SEATS),
            f"{rng.choice(MONTHS)} {rng.randint(1861, 1988)}",
            rng.choice(PRODUCTS),
            supplier[name],
            rng.randint(24, 1900),
            tuple(rng.randint(900, 48_000) for _ in YEARS),
            tuple(rng.randint(-900, 4_000) for _ in YEARS),
        )
        for name in NAMES
    ]


def accounting(amount: int) -> str:
    """1234 as "1,234", -1234 as "(1,234)"."""
    return f"({-amount:,})" if amount < 0 else f"{amount:,}"


def profile(one: Organisation) -> list[str]:
    """Paragraphs about an organisation."""
    return [
        f"{one.name} was founded in {one.founded}. It has its seat in {one.seat} and is known for its {one.product}.",
        f"At the end of {YEARS[-1]} {one.name} employed {one.staff:,} people. Its main supplier is {one.supplier}.",
        f"In {YEARS[-1]} its revenue was {accounting(one.revenue[-1])} thousand crowns, "
        f"after {accounting(one.revenue[-2])} thousand crowns in the year before.",
    ]


def sheet(one: Organisation) -> list[str]:
    """Lines of a data sheet."""
    return [
        f"Organisation: {one.name}",
        f"Seat: {one.seat}",
        f"Founded: {one.founded}",
        f"Main product: {one.product}",
        f"Main supplier: {one.supplier}",
        f"Staff: {one.staff:,} (end of {YEARS[-1]})",
        f"Revenue: {accounting(one.revenue[-1])} thousand crowns ({YEARS[-1]})",
        f"Result: {accounting(one.result[-1])} thousand crowns ({YEARS[-1]})",
    ]


# ── one function a format ──


def docx_bytes(one: Organisation) -> bytes:
    """A report with a table of years."""
    from docx import Document

    document = Document()
    document.add_heading(f"Annual report of {one.name}")
    for paragraph in profile(one):
        document.add_paragraph(paragraph)
    table = document.add_table(rows=1, cols=3)
    for cell, title in zip(table.rows[0].cells, ("Year", "Revenue", "Result"), strict=True):
        cell.text = title
    for year, revenue, result in zip(YEARS, one.revenue, one.result, strict=True):
        for cell, text in zip(table.add_row().cells, (str(year), accounting(revenue), accounting(result)), strict=True):
            cell.text = text
    return _dated_alike(document)


def xlsx_bytes(everyone: list[Organisation]) -> bytes:
    """Accounts: an organisation's name stands merged over its years, losses in parentheses."""
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    sheet.title = "Accounts"
    sheet.append(["Organisation", "Year", "Revenue (thousand crowns)", "Result (thousand crowns)"])
    for one in everyone:
        for year, revenue, result in zip(YEARS, one.revenue, one.result, strict=True):
            sheet.append([one.name, year, accounting(revenue), accounting(result)])
        sheet.merge_cells(start_row=sheet.max_row - len(YEARS) + 1, end_row=sheet.max_row, start_column=1, end_column=1)
    return _dated_alike(book)


def pdf_bytes(lines: list[str]) -> bytes:
    """A page with lines of text."""
    shown = " ".join(f"({line.replace('(', '[').replace(')', ']')}) Tj T*" for line in lines)
    content = f"BT /F1 10 Tf 14 TL 40 760 Td {shown} ET"
    objects = (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R "
        "/Resources << /Font << /F1 3 0 R >> >> >>",
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
    )
    body, offsets = "%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    start = len(body)
    body += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    return f"{body}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode("ascii")


def csv_bytes(everyone: list[Organisation]) -> bytes:
    """Staff and seats as a Western Windows program exports them: semicolons, Windows-1252."""
    lines = ["Organisation;Seat;Staff;Prämie in €"]
    lines += [f"{one.name};{one.seat};{one.staff};{one.staff * 3 // 2}" for one in everyone]
    return "\r\n".join(lines).encode("cp1252")


def html_bytes(one: Organisation) -> bytes:
    """A web page with a script that nobody reads."""
    paragraphs = "".join(f"<p>{paragraph}</p>" for paragraph in profile(one))
    head = f"<head><title>{one.name}</title><script>track()</script></head>"
    return f"<!DOCTYPE html><html>{head}<body><h1>{one.name}</h1>{paragraphs}</body></html>\n".encode()


def markdown_bytes(one: Organisation) -> bytes:
    """A note under a heading."""
    return f"# {one.name}\n\n{chr(10).join(profile(one))}\n".encode()


def _dated_alike(saved: Saved) -> bytes:
    """The Office file, an archive, with fixed dates inside and outside of its members."""
    first, target = io.BytesIO(), io.BytesIO()
    saved.save(first)
    with zipfile.ZipFile(first) as archive, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as again:
        for name in archive.namelist():
            again.writestr(zipfile.ZipInfo(name, FIXED_DATE), WRITTEN.sub(b"2024-01-02T00:00:00Z", archive.read(name)))
    return target.getvalue()


def files() -> Iterator[tuple[str, bytes]]:
    """Name and content of every file."""
    everyone = organisations()
    writers = {
        "docx": docx_bytes,
        "pdf": lambda one: pdf_bytes(profile(one)),
        "html": html_bytes,
        "md": markdown_bytes,
    }
    for number, one in enumerate(everyone):
        file = one.name.lower().replace(" ", "-")
        yield f"sheets/{file}.txt", "\n".join(sheet(one)).encode()
        if number < PROFILES:
            ending, write = list(writers.items())[number % len(writers)]
            yield f"profiles/{file}.{ending}", write(one)
    yield "accounts.xlsx", xlsx_bytes(everyone)
    yield "staff.csv", csv_bytes(everyone)
    copied = markdown_bytes(everyone[3])
    yield "archive/copy-of-a-profile.md", copied
    yield "archive/slides.pptx", zip_bytes({"ppt/presentation.xml": b"<p/>"})
    yield "archive/nothing-yet.txt", b""
    yield "archive/broken.docx", docx_bytes(everyone[0])[:900]
    yield "archive/with-nul-bytes.txt", b"The ferry timetable of Nordsund\x00\x00 changes in spring.\x00\n"
    yield "archive/memory-dump.txt", b"\x00\x01\x02dump" * 40


def zip_bytes(members: dict[str, bytes]) -> bytes:
    """An archive with fixed dates."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, FIXED_DATE), content)
    return target.getvalue()


def write_folder(folder: Path) -> list[str]:
    """Write all files and return their names."""
    written = []
    for name, content in files():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        written.append(name)
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    print(f"{options.folder}: {len(write_folder(options.folder))} files")
