"""What judges did in each step, from the totals that they keep since they were opened."""

from collections.abc import Iterable, Mapping

Totals = tuple[str, Mapping[str, float]]  # which judge, and its `Judge.counts()`


class StepCounts:
    """Each step's figures over all judges: one here, or one in every process that scores."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, float]] = {}

    def step(self, totals: Iterable[Totals]) -> dict[str, float]:
        """By how much the totals grew since the last step, as `judge/<name>`; one judge may give several."""
        grown: dict[str, float] = {}
        for judge, counts in totals:
            seen = self._seen.setdefault(judge, {})
            for name, total in counts.items():
                before = seen.get(name, 0.0)
                grown[f"judge/{name}"] = grown.get(f"judge/{name}", 0.0) + max(0.0, total - before)
                seen[name] = max(before, total)
        return grown
