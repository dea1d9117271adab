"""Which documents sit at one table: a few that are near each other and together fit into a prompt."""

import random
from collections.abc import Callable, Collection, Iterator, Sequence

from tasks.corpus.library import Library
from tasks.records import Split

SEATS = 12  # documents of a table at most
NEIGHBOURS = 4 * SEATS  # nearest documents that are looked at for a table; some sit elsewhere already

Length = Callable[[str], int]  # tokens of a document, by its id


def seat(
    names: Sequence[str], library: Library, split: Split, limit: int, length: Length, rng: random.Random
) -> Iterator[tuple[str, ...]]:
    """Seat documents, given by id, each at one table: a random one, and those of the split that are nearest to it.

    A table has at most `limit` tokens and `SEATS` documents. A document that alone exceeds the limit is left out:
    its prompt would not fit. Each table costs one search, so a large library is seated as far as tables are drawn.
    """
    waiting = set(names)
    for first in rng.sample(names, len(names)):
        if first in waiting and length(first) <= limit:
            seated = [first]
            waiting.remove(first)
            while other := _nearest(seated, waiting, library, split, limit - sum(map(length, seated)), length):
                seated.append(other)
                waiting.remove(other)
            yield tuple(rng.sample(seated, len(seated)))


def _nearest(
    seated: Sequence[str], waiting: Collection[str], library: Library, split: Split, room: int, length: Length
) -> str | None:
    """The document that is nearest to those at the table together, among those that wait and fit."""
    if len(seated) == SEATS:
        return None
    text = "\n".join(library[name].text for name in seated)
    near = library.nearest(text, split, NEIGHBOURS)
    return next((name for name in near if name in waiting and length(name) <= room), None)
