"""Stage `ingest`: country facts and the user's files become documents with a split.

`python -m tasks.corpus.ingest` writes data/corpus/documents.parquet and metrics/ingest.json.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.cli import stage_command
from tasks.errors import InputError
from tasks.params import Params
from tasks.records import Document, Split

if TYPE_CHECKING:
    from tasks.corpus.documents import Draft
    from tasks.corpus.readers import FolderReading

DOCUMENTS = Path("data/corpus/documents.parquet")
METRICS = Path("metrics/ingest.json")


def run(params: Params) -> None:
    """Read, cut, split, write."""
    from tasks.artifacts import stage_lock, write_documents, write_json
    from tasks.tracking import stage_run

    with stage_lock("ingest"), stage_run("ingest", params) as tracker:
        documents, metrics = collect(params)
        write_documents(DOCUMENTS, documents)
        write_json(METRICS, metrics)
        tracker.log_metrics({f"documents/{split}": count for split, count in metrics["documents"].items()}, 0)
        tracker.log_artifact(METRICS)
    for skipped in metrics["skipped_files"]:
        print(f"skipped {skipped.path}: {skipped.reason}")
    for remark in metrics["remarks"]:
        print(f"{remark.path}: {remark.remark}")
    print(f"{len(documents)} documents: {DOCUMENTS}")


def collect(params: Params) -> tuple[list[Document], dict[str, Any]]:
    """Return the documents in the order of their ids, and what there is to report.

    Raises:
        InputError: there is no source, the folder cannot be used, or there is too little to split.
    """
    from tasks.corpus.countries import load_countries
    from tasks.corpus.documents import country_drafts
    from tasks.corpus.readers import FolderReading
    from tasks.corpus.splitting import deal_clusters

    drafts = country_drafts(load_countries(), params.seed) if params.corpus.countries else []
    reading = FolderReading()
    if params.corpus.folder is not None:
        reading, own = _folder_drafts(params, str(params.corpus.folder))
        drafts += own
    if not drafts:
        raise InputError("no documents: corpus.countries is off and corpus.folder is null; switch one on")
    counts: dict[str, Counter[str]] = {}
    for draft in drafts:
        counts.setdefault(draft.cluster, Counter())[draft.kind] += 1
    splits = deal_clusters(counts, _shares(params), params.seed)
    documents = sorted((draft.document(splits[draft.cluster]) for draft in drafts), key=lambda document: document.id)
    return documents, {
        **_counts(documents, splits),
        **_reading_counts(reading),
        "skipped_files": reading.skipped,
        "remarks": reading.remarks,
        "replaced_characters": reading.replaced,
        "removed_characters": reading.removed,
    }


def _folder_drafts(params: Params, folder: str) -> tuple["FolderReading", list["Draft"]]:
    """Cut files so that a document and its question fit the smallest input limit: at most half of it."""
    from tasks.corpus.documents import file_drafts
    from tasks.corpus.readers import read_folder
    from tasks.corpus.splitting import group_near_duplicates
    from tasks.tokenization import ChatTokenizer

    reading = read_folder(folder)
    clusters = group_near_duplicates(
        {source.path: source.text for source in reading.files}, params.filtering.near_duplicate_similarity
    )
    limit = max(1, params.rl.stages["stage1"].max_input_tokens // 2)
    count: Callable[[str], int] = ChatTokenizer.load(params.base_model).count
    drafts = [draft for source in reading.files for draft in file_drafts(source, clusters[source.path], limit, count)]
    return reading, drafts


def _shares(params: Params) -> dict[Split, float]:
    development, test = params.corpus.development_share, params.corpus.test_share
    return {"train": 1.0 - development - test, "development": development, "test": test}


def _counts(documents: Sequence[Document], splits: Mapping[str, Split]) -> dict[str, dict[str, int]]:
    return {
        "documents": dict(Counter(document.split for document in documents)),
        "clusters": dict(Counter(splits.values())),
        "kinds": dict(sorted(Counter(f"{document.kind}/{document.split}" for document in documents).items())),
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
