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

HUB = "hf download --repo-type dataset --local-dir"


@dataclass(frozen=True)
class Entry:
    """A benchmark, how its data gets into the folder `{place}`, and for which purposes it asks a judge.

    `folder` is where its data lies; by default it bears the benchmark's name. `release` tells releases of it apart.
    """

    benchmark: Benchmark[Any] | Interactive[Any]
    how_to_get: str
    purposes: tuple[Purpose, ...] = ()
    folder: str = ""
    release: Callable[[Path], str] | None = None


ENTRIES: Sequence[Entry] = (
    Entry(LONGBENCH_V2, f"{HUB} {{place}} THUDM/LongBench-v2 data.json --revision {LONGBENCH_V2.source.split('@')[1]}"),
    Entry(
        LONGBENCH_V1,
        f"{HUB} {{place}} THUDM/LongBench data.zip --revision {LONGBENCH_V1.source.split('@')[1]}, then unzip it there",
        (EQUIVALENCE,),
    ),
    Entry(FRAMES, f"{HUB} {{place}} Tongyi-Zhiwen/frames test.jsonl", (VITAL_FACTS,)),
    Entry(DOCMATH, f"{HUB} {{place}} Tongyi-Zhiwen/docmath"),
    Entry(CORPUSQA, f"{HUB} {{place}} Tongyi-Zhiwen/CorpusQA", (CORPUS_QA, EQUIVALENCE)),
    Entry(MRCR, f"{HUB} {{place}} openai/mrcr --revision {MRCR.source.split('@')[1]}"),
    Entry(RULER, "python -m tasks.evaluation.benchmarks.ruler.generate --out {place} (--help has the rest)"),
    Entry(
        LONGMEMEVAL,
        f"{HUB} {{place}} xiaowu0162/longmemeval-cleaned longmemeval_s_cleaned.json "
        f"--revision {LONGMEMEVAL.source.split('@')[1]}",
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
    Entry(MMLU_PRO, f"{HUB} {{place}} TIGER-Lab/MMLU-Pro"),
    Entry(AIME24, f"{HUB} {{place}} Maxwell-Jia/AIME_2024"),
    Entry(AIME25, f"{HUB} {{place}} math-ai/aime25"),
    Entry(GPQA_DIAMOND, f"{HUB} {{place}} Idavidrein/gpqa (its conditions must be accepted)"),
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
    """Where a benchmark's data lies.

    Raises:
        InputError: it is not there; the message says how to get it.
    """
    place = folder / (entry.folder or entry.benchmark.name)
    if not place.is_dir():
        raise InputError(f"{place} does not exist; get the data: {entry.how_to_get.format(place=place)}")
    return place
