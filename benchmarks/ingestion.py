"""How fast each format is read: `PYTHONPATH=. python benchmarks/ingestion.py`.

The same sentences, or the same table, in files of every format that is read. Counted is the CPU time of this process
and of the reader's, from listing the folder to clean texts; what a folder with one small file of the format takes
(starting the reader, loading libraries) is taken off. MB are of the text that came out, in UTF-8.
"""

import csv
import io
import json
import os
import random
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")

from tasks.corpus.readers import SourceFile, read_folder
from tests.corpus.files import pdf_bytes

REPEATS = 3
PARAGRAPHS = 400  # of a file
LINES = 3000  # of a table
LARGE, SMALL = 6, 1  # files of a folder; a small one has a twentieth of the text
VOCABULARY = [f"{first}{second}{third}" for first in ("ba", "str", "m") for second in "aeiou" for third in ("n", "rt")]

Write = Callable[[Path, random.Random, int], None]


def main() -> None:
    """Print a line a format."""
    print(f"{'format':8} {'MB of text':>11} {'MB per CPU-s':>13}   (median of {REPEATS})")
    for ending, write in WRITERS.items():
        with tempfile.TemporaryDirectory() as folder:
            large, small = Path(folder) / "large", Path(folder) / "small"
            fill(large, ending, write, LARGE, 1.0)
            fill(small, ending, write, SMALL, 0.05)
            rates = []
            for _ in range(REPEATS):
                (much, long), (little, short) = measured(large), measured(small)
                rates.append((much - little) / (long - short))
        print(f"{ending:8} {much / 1e6:11.1f} {median(rates) / 1e6:13.2f}", flush=True)


def fill(folder: Path, ending: str, write: Write, files: int, share: float) -> None:
    """Files of one format, no two alike."""
    folder.mkdir()
    scale = LINES if ending in TABLES else PARAGRAPHS
    for number in range(files):
        write(folder / f"{number}.{ending}", random.Random(number), int(share * scale))


def measured(folder: Path) -> tuple[int, float]:
    """Bytes of text that come out, and the CPU-seconds this takes."""
    size = 0

    def keep(source: SourceFile) -> None:
        nonlocal size
        size += len(source.text.encode())

    before = _cpu_seconds()
    read_folder(folder, keep)
    return size, _cpu_seconds() - before


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _paragraphs(rng: random.Random, number: int) -> list[str]:
    return [" ".join(rng.choices(VOCABULARY, k=80)).capitalize() + "." for _ in range(number)]


def _table(rng: random.Random, number: int) -> list[list[str]]:
    return [["name", "count", "share", "day"], *(_line(rng, line) for line in range(number))]


def _line(rng: random.Random, number: int) -> list[str]:
    return [f"{rng.choice(VOCABULARY)} {number}", str(rng.randrange(10**6)), f"{rng.random():.4f}", "2024-05-17"]


def _text(path: Path, rng: random.Random, number: int) -> None:
    path.write_text("\n\n".join(_paragraphs(rng, number)))


def _html(path: Path, rng: random.Random, number: int) -> None:
    body = "".join(f"<p>{paragraph}</p>" for paragraph in _paragraphs(rng, number))
    path.write_text(f"<html><head><title>t</title></head><body>{body}</body></html>")


def _pdf(path: Path, rng: random.Random, number: int) -> None:
    path.write_bytes(pdf_bytes(_paragraphs(rng, number)))


def _docx(path: Path, rng: random.Random, number: int) -> None:
    from docx import Document

    document = Document()
    for paragraph in _paragraphs(rng, number):
        document.add_paragraph(paragraph)
    document.save(str(path))


def _delimited(path: Path, rng: random.Random, number: int) -> None:
    out = io.StringIO()
    csv.writer(out, delimiter="\t" if path.suffix == ".tsv" else ",").writerows(_table(rng, number))
    path.write_text(out.getvalue())


def _xlsx(path: Path, rng: random.Random, number: int) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for line in _table(rng, number):
        book.active.append(line)
    book.save(path)


def _records(rng: random.Random, number: int) -> list[dict[str, str]]:
    return [{"text": paragraph} for paragraph in _paragraphs(rng, number)]


def _json(path: Path, rng: random.Random, number: int) -> None:
    path.write_text(json.dumps(_records(rng, number)))


def _jsonl(path: Path, rng: random.Random, number: int) -> None:
    path.write_text("\n".join(map(json.dumps, _records(rng, number))))


def _parquet(path: Path, rng: random.Random, number: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(_records(rng, number)), path)


TABLES = ("csv", "tsv", "xlsx")
WRITERS: dict[str, Write] = {
    "txt": _text,
    "md": _text,
    "html": _html,
    "pdf": _pdf,
    "docx": _docx,
    "csv": _delimited,
    "tsv": _delimited,
    "xlsx": _xlsx,
    "json": _json,
    "jsonl": _jsonl,
    "parquet": _parquet,
}


if __name__ == "__main__":
    main()
