"""The dataset card of data/balanced: what the folder holds, where it came from and how it was made."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tasks.artifacts import sha256_of
from tasks.filtering.difficulty import bin_of
from tasks.params import Params
from tasks.records import Document, Item, Split

CARD = "README.md"
MOST_SOURCES = 20  # listed by name
SIZES = {"n<1K": 1_000, "1K<n<10K": 10_000, "10K<n<100K": 100_000, "100K<n<1M": 1_000_000}  # the hub's words


@dataclass
class Contents:
    """Counts of one split, taken as its items pass by."""

    rows: Counter[tuple[str, int]] = field(default_factory=Counter)  # domain, length bucket
    generators: Counter[str] = field(default_factory=Counter)
    checks: Counter[tuple[str, ...]] = field(default_factory=Counter)
    rates: list[float] = field(default_factory=list)
    evidence: set[str] = field(default_factory=set)
    tokens: int = 0

    def add(self, item: Item) -> Item:
        """Count an item and hand it on."""
        question = item.question
        self.rows[question.domain.value, item.length_bucket] += 1
        self.generators[question.generator] += 1
        self.checks[item.checks] += 1
        self.evidence.update(question.document_ids)
        self.tokens += item.input_tokens
        if item.pass_rate is not None:
            self.rates.append(item.pass_rate)
        return item


def dataset_card(
    folder: Path, contents: Mapping[Split, Contents], documents: Iterable[Document], params: Params
) -> str:
    """The card of the parquet files in `folder`, which are hashed; a split without items is not announced."""
    filled = {split: one for split, one in contents.items() if one.rows}
    parts = (
        _front_matter(filled, params),
        f"# Long-context questions, profile {params.profile}\n\n{_INTRODUCTION}",
        f"## Contents\n\n{_contents(filled)}",
        f"## Difficulty\n\n{_difficulty(filled, params)}",
        f"## How it was made\n\n{_making(filled, params)}",
        f"## Sources and licence\n\n{_sources(filled, documents)}",
        f"## Files\n\n{_files(folder, filled)}",
        f"## Limitations\n\n{_LIMITATIONS}",
    )
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = (
    "Questions with short, checkable answers on contexts of many documents, in verl's schema: `data_source` is the "
    "domain, `prompt` the user message, `reward_model.ground_truth` the answer (a JSON list for list answers), "
    "`extra_info` the documents, the evidence among them (`evidence_ids`), how the answer is known (`provenance`) and "
    "which checks it passed."
)
_LIMITATIONS = (
    "Questions are synthetic and answers are as right as the documents and the generators. Pass rates are those of one "
    "base model at one sampling. Held-out questions share no document with the training questions, but were not dropped"
    " for being hard, so the splits differ in difficulty. Grounding removes what the base model knows, not what others "
    "may know. Contamination was looked for by shared words; a paraphrase is not found."
)


def _front_matter(contents: Mapping[Split, Contents], params: Params) -> str:
    total = sum(one.rows.total() for one in contents.values())
    fields = {
        "pretty_name": f"Long-context questions, profile {params.profile}",
        "license": "other",
        "task_categories": ["question-answering"],
        "size_categories": [next((name for name, limit in SIZES.items() if total < limit), "n>1M")],
        "tags": ["long-context", "reinforcement-learning", "synthetic"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": f"{split}.parquet"} for split in contents],
            }
        ],
    }
    return f"---\n{yaml.safe_dump(fields, sort_keys=False)}---"


def _contents(contents: Mapping[Split, Contents]) -> str:
    lengths = sorted({length for one in contents.values() for _, length in one.rows})
    rows = []
    for split, one in contents.items():
        for domain in sorted({domain for domain, _ in one.rows}):
            counts = [one.rows[domain, length] for length in lengths]
            rows.append([split, domain, *map(str, counts), str(sum(counts))])
        sums = [sum(count for (_, its), count in one.rows.items() if its == length) for length in lengths]
        rows.append([split, "all", *map(str, sums), str(sum(sums))])
    totals = ", ".join(f"{split} {one.tokens / one.rows.total():.0f}" for split, one in contents.items())
    header = ["split", "domain", *(f"≤ {length} tokens" for length in lengths), "items"]
    return f"{_table(header, rows)}\n\nMean input tokens: {totals}."


def _difficulty(contents: Mapping[Split, Contents], params: Params) -> str:
    bins = params.filtering.pass_rate_bins
    rates = contents["train"].rates if "train" in contents else []
    counts = Counter(bin_of(rate, bins) for rate in rates)
    header = [f"{100 * level // bins}–{100 * (level + 1) // bins} %" for level in range(bins)]
    return (
        f"Training items by the pass rate of `{params.base_model.name}` over {params.filtering.robustness_samples} "
        "answers, as equal as the questions allow within each domain (`extra_info.pass_rate`).\n\n"
        + _table(header, [[str(counts[level]) for level in range(bins)]])
    )


def _making(contents: Mapping[Split, Contents], params: Params) -> str:
    generators: Counter[str] = Counter()
    for one in contents.values():
        generators.update(one.generators)
    checks = {split: sorted({check for done in one.checks for check in done}) for split, one in contents.items()}
    listed = "\n".join(f"* {split}: {', '.join(names) or 'none'}" for split, names in checks.items())
    made = ", ".join(f"{name} {count}" for name, count in sorted(generators.items()))
    return (
        "`dvc repro balance` makes it from the corpus: questions are written from a knowledge graph, from tables, and "
        "by a model that plays against itself; then checked, put on contexts of dealt lengths and balanced "
        "(QwenLong-L1.5, arXiv 2512.12967, §3 and §4.2).\n\n"
        f"Items by generator: {made}. Seed {params.seed}; writer: {params.synthesis.writer.type}.\n\n"
        f"Checks passed:\n\n{listed}"
    )


def _sources(contents: Mapping[Split, Contents], documents: Iterable[Document]) -> str:
    used = frozenset[str]().union(*(one.evidence for one in contents.values()))
    found = Counter(document.source for document in documents if document.id in used)
    lines = [f"* {name}: {count} documents" for name, count in found.most_common(MOST_SOURCES)]
    if len(found) > MOST_SOURCES:
        lines.append(f"* and {len(found) - MOST_SOURCES} more")
    return (
        "Evidence documents by source:\n\n" + "\n".join(lines) + "\n\nThe rows hold the documents' texts, which keep "
        "the licences of their sources; see to them before you pass the data on."
    )


def _files(folder: Path, contents: Mapping[Split, Contents]) -> str:
    rows = [
        [f"{split}.parquet", str(one.rows.total()), sha256_of(folder / f"{split}.parquet")]
        for split, one in contents.items()
    ]
    return _table(["file", "rows", "sha256"], rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
