"""Balance the verified training items by difficulty: data/balanced/train.parquet and metrics/balance.json.

QwenLong-L1.5 §4.2: uniform bins of the base model's pass rate, equal counts from each bin of a domain.
"""

from dataclasses import dataclass
from pathlib import Path

from tasks.artifacts import read_items, stage_lock, write_items, write_json
from tasks.cli import stage_command
from tasks.filtering.difficulty import balance, histogram
from tasks.params import Params
from tasks.records import Domain
from tasks.tracking import stage_run

VERIFIED = Path("data/verified/train.parquet")
BALANCED = Path("data/balanced/train.parquet")
METRICS = Path("metrics/balance.json")


@dataclass(frozen=True)
class Balance:
    """metrics/balance.json: items per domain and pass-rate bin, from hardest to easiest."""

    bins: int
    before: dict[Domain, list[int]]
    after: dict[Domain, list[int]]


def run(params: Params) -> None:
    """The balancing stage."""
    with stage_lock("balance"), stage_run("balance", params) as tracker:
        items = read_items(VERIFIED)
        bins = params.filtering.pass_rate_bins
        kept = balance(items, bins, params.seed)
        result = Balance(bins, histogram(items, bins), histogram(kept, bins))
        write_items(BALANCED, kept)
        write_json(METRICS, result)
        tracker.log_metrics({"before": len(items), "after": len(kept)}, step=0)
        tracker.log_artifact(METRICS)
    print(f"{len(kept)} of {len(items)} training items kept: {BALANCED}")


if __name__ == "__main__":
    stage_command(__doc__ or "", None, run)
