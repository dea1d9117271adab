"""All benchmarks by name, the command that gets their data, and what a judge decides for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.errors import InputError, ParameterError
from tasks.evaluation.benchmarks.base import Benchmark
from tasks.evaluation.benchmarks.bfcl_memory import BFCL_MEMORY_KV, BFCL_MEMORY_REC_SUM
from tasks.evaluation.benchmarks.corpusqa import CORPUSQA
from tasks.evaluation.benchmarks.docmath import DOCMATH
from tasks.evaluation.benchmarks.frames import FRAMES
from tasks.evaluation.benchmarks.harness import AIME24, AIME25, GPQA_DIAMOND, MMLU_PRO
from tasks.evaluation.benchmarks.hub import HubData, fetch
from tasks.evaluation.benchmarks.interactive import Interactive
from tasks.evaluation.benchmarks.longbench_v1 import LONGBENCH_V1
from tasks.evaluation.benchmarks.longbench_v2 import LONGBENCH_V2
from tasks.evaluation.benchmarks.longmemeval import LONGMEMEVAL, release_of
from tasks.evaluation.benchmarks.mrcr import MRCR
from tasks.evaluation.benchmarks.ruler.ruler import RULER
from tasks.rewards.judging.purposes import (
    CORPUS_QA,
    EQUIVALENCE,
    MEMORY_ABSTENTION,
    MEMORY_FACT,
    MEMORY_PREFERENCE,
    MEMORY_TIME,
    MEMORY_UPDATE,
    VITAL_FACTS,
    Purpose,
)


@dataclass(frozen=True)
class Entry:
    """A benchmark, where its data comes from, and for which purposes it asks a judge.

    `data` is on the hub, or it is a line that says how to get it to `{place}`. `folder` is where it lies; by default it
    bears the benchmark's name. `release` tells releases of it apart.
    """

    benchmark: Benchmark[Any] | Interactive[Any]
    data: HubData | str
    purposes: tuple[Purpose, ...] = ()
    folder: str = ""
    release: Callable[[Path], str] | None = None


def _revision(benchmark: Benchmark[Any]) -> str:
    return benchmark.source.split("@")[1]


ENTRIES: Sequence[Entry] = (
    Entry(LONGBENCH_V2, HubData("THUDM/LongBench-v2", ("data.json",), _revision(LONGBENCH_V2))),
    Entry(LONGBENCH_V1, HubData("THUDM/LongBench", ("data.zip",), _revision(LONGBENCH_V1)), (EQUIVALENCE,)),
    Entry(FRAMES, HubData("Tongyi-Zhiwen/frames", ("test.jsonl",)), (VITAL_FACTS,)),
    Entry(DOCMATH, HubData("Tongyi-Zhiwen/docmath")),
    Entry(CORPUSQA, HubData("Tongyi-Zhiwen/CorpusQA"), (CORPUS_QA, EQUIVALENCE)),
    Entry(MRCR, HubData("openai/mrcr", revision=_revision(MRCR))),
    Entry(RULER, "python -m tasks.evaluation.benchmarks.ruler.generate --out {place} (--help has the rest)"),
    Entry(
        LONGMEMEVAL,
        HubData("xiaowu0162/longmemeval-cleaned", ("longmemeval_s_cleaned.json",), _revision(LONGMEMEVAL)),
        (MEMORY_FACT, MEMORY_TIME, MEMORY_UPDATE, MEMORY_PREFERENCE, MEMORY_ABSTENTION),
        release=release_of,
    ),
    *(
        Entry(
            benchmark,
            "bfcl_eval/data of github.com/ShishirPatil/gorilla at 6ea5797, copied to {place}",
            (EQUIVALENCE,),
            folder="bfcl_memory",
        )
        for benchmark in (BFCL_MEMORY_KV, BFCL_MEMORY_REC_SUM)
    ),
    Entry(MMLU_PRO, HubData("TIGER-Lab/MMLU-Pro")),
    Entry(AIME24, HubData("Maxwell-Jia/AIME_2024")),
    Entry(AIME25, HubData("math-ai/aime25")),
    Entry(GPQA_DIAMOND, HubData("Idavidrein/gpqa")),  # its conditions must be accepted there first
)
BY_NAME: Mapping[str, Entry] = {entry.benchmark.name: entry for entry in ENTRIES}


def entry_of(name: str) -> Entry:
    """The entry of a benchmark.

    Raises:
        ParameterError: there is none of that name.
    """
    if name not in BY_NAME:
        raise ParameterError(f"there is no benchmark {name!r}; known: {', '.join(BY_NAME)}")
    return BY_NAME[name]


def data_of(entry: Entry, folder: Path) -> Path:
    """Where a benchmark's data lies; it is brought there from the hub if need be.

    Raises:
        InputError: it is not there and cannot be brought; the message says how to get it.
    """
    place = folder / (entry.folder or entry.benchmark.name)
    if place.is_dir():
        return place
    if isinstance(entry.data, str):
        raise InputError(f"{place} does not exist; get the data: {entry.data.format(place=place)}")
    fetch(entry.data, place)
    return place
