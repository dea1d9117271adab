"""Stage `ingest`: country facts and the user's files become documents with a split.

`python -m tasks.corpus.ingest` writes data/corpus/documents.parquet and metrics/ingest.json.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.cli import stage_command
from tasks.errors import InputError
from tasks.params import Params
from tasks.records import Split

if TYPE_CHECKING:
    from tasks.corpus.documents import Draft
    from tasks.corpus.readers import FolderReading, SourceFile
    from tasks.corpus.spool import Spool

DOCUMENTS = Path("data/corpus/documents.parquet")
METRICS = Path("metrics/ingest.json")
SPOOL = "spool.sqlite"


def run(params: Params) -> None:
    """Read, cut, split, write."""
    from tasks.artifacts import document_writer, stage_lock, write_json
    from tasks.corpus.spool import Spool
    from tasks.tracking import stage_run

    with stage_lock("ingest") as folder, stage_run("ingest", params) as tracker, Spool.at(folder / SPOOL) as spool:
        splits, metrics = collect(params, spool)
        with document_writer(DOCUMENTS) as writer:
            writer.write(spool.documents(splits))
        write_json(METRICS, metrics)
        tracker.log_metrics({f"documents/{split}": count for split, count in metrics["documents"].items()}, 0)
        tracker.log_artifact(METRICS)
    for skipped in metrics["skipped_files"]:
        print(f"skipped {skipped.path}: {skipped.reason}")
    for remark in metrics["remarks"]:
        print(f"{remark.path}: {remark.remark}")
    print(f"{writer.written} documents: {DOCUMENTS}")


def collect(params: Params, spool: "Spool") -> tuple[dict[str, Split], dict[str, Any]]:
    """Fill the spool; return the split of each cluster of documents, and what there is to report.

    Raises:
        InputError: there is no source, the folder cannot be used, or there is too little to split.
    """
    from tasks.corpus.countries import load_countries
    from tasks.corpus.documents import country_drafts
    from tasks.corpus.readers import FolderReading
    from tasks.corpus.splitting import deal_clusters

    if params.corpus.countries:
        spool.add(country_drafts(load_countries(), params.seed))
    folder = params.corpus.folder
    reading = FolderReading() if folder is None else _read(folder, params, spool)
    counts = spool.counts()
    if not counts:
        raise InputError("no documents: corpus.countries is off and corpus.folder is null; switch one on")
    splits = deal_clusters(counts, _shares(params), params.seed)
    return splits, {
        **_counts(counts, splits),
        **_reading_counts(reading),
        "skipped_files": reading.skipped,
        "remarks": reading.remarks,
        "replaced_characters": reading.replaced,
        "removed_characters": reading.removed,
        "changed_line_breaks": reading.breaks,
    }


def _read(folder: str, params: Params, spool: "Spool") -> "FolderReading":
    """Cut files so that a document and its question fit the smallest input limit: at most half of it.

    Only the closed language needs tables as rows of counts; a writer model reads them as they are.
    """
    from tasks.corpus.documents import file_drafts
    from tasks.tokenization import ChatTokenizer

    limit = max(1, params.rl.stages["stage1"].max_input_tokens // 2)
    count = ChatTokenizer.load(params.base_model).count
    return read_files(
        folder,
        spool,
        lambda source: file_drafts(source, limit, count),
        params.filtering.near_duplicate_similarity,
        counts=params.synthesis.writer.type == "grammar",
    )


def read_files(
    folder: str, spool: "Spool", cut: Callable[["SourceFile"], list["Draft"]], similarity: float, counts: bool = True
) -> "FolderReading":
    """Read a source into the spool, each file cut into documents; near-duplicate files are one cluster.

    `counts` as in `read_folder`.
    """
    from tasks.corpus.near_duplicates import NearDuplicates
    from tasks.corpus.readers import Remark, read_folder

    near = NearDuplicates(similarity)
    remarks: list[Remark] = []

    def keep(source: "SourceFile") -> str | None:
        original = spool.keep(source)
        if original is None:
            near.add(source.text)
            repeated = spool.add(cut(source))
            if repeated:
                remarks.append(
                    Remark(source.path, f"{repeated} passage(s) left out that another document has word for word")
                )
        return original

    reading = read_folder(folder, keep, counts)
    reading.remarks += remarks
    for number, first in enumerate(near.clusters(spool.text)):
        if first != number:
            spool.merge(spool.path(number), into=spool.path(first))
    return reading


def _shares(params: Params) -> dict[Split, float]:
    development, test = params.corpus.development_share, params.corpus.test_share
    return {"train": 1.0 - development - test, "development": development, "test": test}


def _counts(counts: Mapping[str, Mapping[str, int]], splits: Mapping[str, Split]) -> dict[str, dict[str, int]]:
    documents, kinds = Counter[str](), Counter[str]()
    for cluster, split in splits.items():
        documents[split] += sum(counts[cluster].values())
        kinds.update({f"{kind}/{split}": number for kind, number in counts[cluster].items()})
    return {
        "documents": dict(sorted(documents.items())),
        "clusters": dict(sorted(Counter(splits.values()).items())),
        "kinds": dict(sorted(kinds.items())),
    }


def _reading_counts(reading: "FolderReading") -> dict[str, dict[str, int]]:
    return {
        "files_read": dict(sorted(reading.formats.items())),
        "files_left_out": reading.reasons,
        "encodings": dict(sorted(reading.encodings.items())),
        "dialects": dict(sorted(reading.dialects.items())),
    }


if __name__ == "__main__":
    stage_command("Turn country facts and a folder of files into documents with a split.", None, run)
