"""What became of the answers that a judge got, and an alarm when too many of them got no verdict."""

import logging
from collections import Counter
from collections.abc import Mapping
from threading import Lock

logger = logging.getLogger(__name__)

NAMES = ("asked", "asked_again", "unparsed", "unscored", "refused_unasked", "approved_without_answer")


class Tally:
    """Counts by name, from any thread. Warns at the 1st, 2nd, 4th, 8th … unscored answer above the share."""

    def __init__(self, alarm_share: float) -> None:
        self._alarm_share = alarm_share
        self._counts = Counter(dict.fromkeys(NAMES, 0))
        self._lock = Lock()

    def add(self, name: str, number: int = 1) -> None:
        """Count some more of one of `NAMES`."""
        with self._lock:
            self._counts[name] += number

    def unscored(self, reason: str) -> None:
        """Count an answer that no verdict could be had for, asked or not."""
        with self._lock:
            self._counts["unscored"] += 1
            unscored, asked = self._counts["unscored"], max(1, self._counts["asked"])
        if unscored > self._alarm_share * asked and unscored & (unscored - 1) == 0:
            logger.warning(
                "the judge left %d of %d answers unscored (alarm above %.0f %%), the last one: %s; "
                "check its server, its limits and its context",
                unscored,
                asked,
                100 * self._alarm_share,
                reason,
            )

    def counts(self) -> Mapping[str, float]:
        """All names, zeros included."""
        with self._lock:
            return dict(self._counts)
