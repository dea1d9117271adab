"""Balance the verified training items by difficulty and domain: data/balanced/ and metrics/balance.json.

QwenLong-L1.5 §4.2: uniform bins of the base model's pass rate, equal counts from each bin of a domain. Verification
stopped asking at the first right answer; here the base model gives the rest of its answers, so that every rate is over
the same number. The held-out splits lie beside the training items, unchanged, with a dataset card: `datasets` loads the
folder as it is.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tasks.artifacts import (
    atomic_folder,
    stage_lock,
    stream_documents,
    stream_items,
    write_items,
    write_json,
    write_text,
)
from tasks.checkpoints import check_checkpoint
from tasks.cli import stage_command
from tasks.execution import run_batches
from tasks.filtering.card import CARD, Contents, dataset_card
from tasks.filtering.difficulty import Measured, balance, histogram
from tasks.filtering.examination import Completer, batches
from tasks.filtering.funnel import SPLITS
from tasks.params import Params
from tasks.progress import meter
from tasks.records import Domain, Item, Trials
from tasks.tracking import stage_run

DOCUMENTS = Path("data/corpus/documents.parquet")
VERIFIED = Path("data/verified")
BALANCED = Path("data/balanced")
METRICS = Path("metrics/balance.json")


@dataclass(frozen=True)
class Balance:
    """metrics/balance.json: training items per domain and pass-rate bin, from hardest to easiest, and the kept ones of
    each generator.
    """

    bins: int
    before: dict[Domain, list[int]]
    after: dict[Domain, list[int]]
    generators: dict[str, int]


def run(params: Params) -> None:
    """The balancing stage."""
    with stage_lock("balance"), stage_run("balance", params) as tracker:
        check_checkpoint(params.base_model)
        bins = params.filtering.pass_rate_bins
        items = measure(params)
        tracker.log_dataset(VERIFIED, "verified")
        kept = balance(items, bins, params.seed)
        generators = dict(sorted(Counter(item.generator for item in kept).items()))
        result = Balance(bins, histogram(items, bins), histogram(kept, bins), generators)
        write_balanced(kept, params)
        write_json(METRICS, result)
        tracker.log_metrics({"before": len(items), "after": len(kept)}, step=0)
        tracker.log_artifact(METRICS)
        tracker.log_artifact(BALANCED / CARD)
    print(f"{len(kept)} of {len(items)} training items kept: {BALANCED / 'train.parquet'}")


def measure(params: Params) -> list[Measured]:
    """Draw the answers that verification left out, and give every training item its pass rate."""
    path = VERIFIED / "train.parquet"
    measured: list[Measured] = []
    with meter("balance: pass rates", max(1, sum(1 for _ in stream_items(path)))) as progress:
        asked = batches(stream_items(path), params.execution)
        for batch in run_batches(partial(Completer, params), asked, params.execution):
            measured += batch
            progress.advance(len(batch), "items")
    return measured


def write_balanced(kept: Sequence[Measured], params: Params) -> None:
    """The kept training items with their rates, the held-out splits as they are, and the card."""
    trials = {item.id: item.trials for item in kept}
    contents = {split: Contents() for split in SPLITS}
    with atomic_folder(BALANCED) as folder:
        write_items(folder / "train.parquet", map(contents["train"].add, _kept(trials)))
        for split in ("development", "test"):
            shutil.copyfile(VERIFIED / f"{split}.parquet", folder / f"{split}.parquet")
            for item in stream_items(folder / f"{split}.parquet"):
                contents[split].add(item)
        write_text(folder / CARD, dataset_card(folder, contents, stream_documents(DOCUMENTS), params))


def _kept(trials: Mapping[str, Trials]) -> Iterator[Item]:
    for item in stream_items(VERIFIED / "train.parquet"):
        if its := trials.get(item.question.id):
            yield item.model_copy(update={"trials": its, "pass_rate": its.rate})


if __name__ == "__main__":
    stage_command(__doc__ or "", None, run)
