"""Peak memory over generated corpora of growing size: `python benchmarks/memory.py`.

Each size runs in a process of its own: documents are made one by one in files, ingested (read, cleaned, compared for
near-duplicates, dealt to splits), indexed as a library, asked for the nearest of 200 texts and the mentions of 200
names, and written out as items with long contexts. Sizes are of documents of about 2.5 KB; every fiftieth is nearly
another's copy. Printed is the largest resident set of the process and its reader while each part ran, in MB.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.corpus.library import Library
    from tasks.records import Item

os.environ.update(OMP_NUM_THREADS="1", RAYON_NUM_THREADS="1")

SIZES = (1_000, 5_000, 20_000, 50_000)
WORDS = 400
QUERIES = 200
DOCUMENTS_PER_FILE = 500
CONTEXT = 40  # documents of an item
PERIOD = 0.05  # seconds between two looks
PARTS = ("ingest", "library", "queries", "items")


class Watch:
    """The largest resident set, of this process and its children, while a part runs."""

    def __init__(self) -> None:
        self.peaks: dict[str, float] = {}
        self.seconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Look now and then, until the block ends."""
        done = threading.Event()
        looks = threading.Thread(target=self._look, args=(name, done))
        looks.start()
        start = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] = time.process_time() - start
            done.set()
            looks.join()

    def _look(self, name: str, done: threading.Event) -> None:
        import psutil

        process = psutil.Process()
        while True:
            held = process.memory_info().rss
            for child in process.children(recursive=True):
                try:
                    held += child.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            self.peaks[name] = max(self.peaks.get(name, 0.0), held / 1e6)
            if done.wait(PERIOD):
                return


def main() -> None:
    """Run all sizes and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, help="one size, its figures as JSON")
    size: int | None = parser.parse_args().size
    if size is not None:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            print(json.dumps(measured(size)))
        return
    print(f"{'documents':>10} {'text MB':>8}" + "".join(f"{name + ' MB':>12}" for name in PARTS) + f"{'CPU-s':>8}")
    for size in SIZES:
        command = [sys.executable, __file__, "--size", str(size)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        peaks = "".join(f"{found['peaks'][name]:12.0f}" for name in PARTS)
        print(f"{size:10,} {found['text']:8.1f}{peaks}{found['seconds']:8.0f}", flush=True)


def measured(size: int) -> dict[str, object]:
    """Take one corpus through all parts, in the current folder."""
    from tasks.artifacts import document_writer, item_writer
    from tasks.corpus.documents import file_drafts
    from tasks.corpus.ingest import read_files
    from tasks.corpus.library import Library
    from tasks.corpus.splitting import deal_clusters
    from tasks.corpus.spool import Spool

    characters = write_corpus(Path("corpus"), size)
    watch = Watch()
    with watch.part("ingest"), Spool.at(Path("spool")) as spool:
        read_files("corpus", spool, lambda source: file_drafts(source, 10_000, len), similarity=0.9)
        splits = deal_clusters(spool.counts(), {"train": 0.6, "development": 0.1, "test": 0.3}, 0)
        with document_writer(Path("documents.parquet")) as documents:
            documents.write(spool.documents(splits))
    with watch.part("library"):
        library = Library.open(Path("documents.parquet"))
    rng = random.Random(1)
    with watch.part("queries"):
        contexts = [library.nearest(sentence(rng, 30), "train", CONTEXT) for _ in range(QUERIES)]
        for _ in range(QUERIES):
            library.mentioning(sentence(rng, 1), "train")
    with watch.part("items"), item_writer(Path("items.parquet")) as items:
        items.write(item(library, contexts[number % QUERIES], number) for number in range(size // 20))
    return {"peaks": watch.peaks, "seconds": sum(watch.seconds.values()), "text": characters / 1e6}


def write_corpus(folder: Path, size: int) -> int:
    """Texts as records in files of some hundred each; how many characters."""
    folder.mkdir()
    rng = random.Random(0)
    characters = 0
    text = ""
    for first in range(0, size, DOCUMENTS_PER_FILE):
        with (folder / f"{first:06}.jsonl").open("w") as file:
            for number in range(first, min(size, first + DOCUMENTS_PER_FILE)):
                text = f"{text} copied" if number % 50 == 1 else sentence(rng, WORDS)
                characters += len(text)
                file.write(json.dumps({"text": text}) + "\n")
    return characters


def sentence(rng: random.Random, words: int) -> str:
    """Words of which some are common and most are rare."""
    return " ".join(f"w{int(200_000 ** rng.random()):x}" for _ in range(words))


def item(library: "Library", names: list[str], number: int) -> "Item":
    """A question on all these documents."""
    from tasks.records import AnswerKind, Domain, Item, Question

    question = Question(
        id=f"q{number}",
        domain=Domain.MULTI_HOP,
        question="Which one?",
        gold=("this",),
        answer_kind=AnswerKind.TEXT,
        document_ids=tuple(names[:1]),
        split="train",
        generator="knowledge_graph",
        difficulty=1,
        provenance={"kind": "path", "facts": []},
        seed=0,
    )
    texts = tuple(library[name].text for name in names)
    return Item(question=question, documents=texts, document_ids=tuple(names), length_bucket=1, input_tokens=1)


if __name__ == "__main__":
    main()
