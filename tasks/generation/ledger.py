"""What requests cost, and a budget that is kept before money is spent."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tasks.errors import BudgetError
from tasks.generation.store import open_store, usable

TABLE = "CREATE TABLE IF NOT EXISTS spending (input_tokens INTEGER, output_tokens INTEGER)"
MILLION = 1_000_000


@dataclass
class Tokens:
    """Read and written."""

    input: int = 0
    output: int = 0


class Ledger:
    """Counts tokens in a file, so that a killed or repeated stage goes on from what it has already spent.

    Prices are of a million tokens; the budget, null for none, is in their currency. For one event loop. `section` is
    that of the parameters in which the budget stands.
    """

    def __init__(
        self,
        path: Path,
        input_price: float,
        output_price: float,
        budget: float | None,
        section: str = "synthesis.writer",
    ) -> None:
        self._path = path
        self._section = section
        self._input_price = input_price
        self._output_price = output_price
        self._budget = budget
        self._stopped = False
        self._under_way = 0
        self._reserved = 0.0
        self._changed = asyncio.Condition()
        self._store = open_store(path, TABLE)
        with usable(path):
            total = self._store.execute("SELECT SUM(input_tokens), SUM(output_tokens) FROM spending").fetchone()
        self._spent = Tokens(total[0] or 0, total[1] or 0)

    def cost(self, tokens: Tokens) -> float:
        """Of so many tokens."""
        return (tokens.input * self._input_price + tokens.output * self._output_price) / MILLION

    def counts(self) -> Mapping[str, float]:
        """Totals since the file was begun."""
        spent = self._spent
        return {"input_tokens": spent.input, "output_tokens": spent.output, "cost": self.cost(spent)}

    @asynccontextmanager
    async def reserved(self, most: Tokens) -> AsyncIterator[Tokens]:
        """Hold back what a request may cost at most; what it did cost is written into the yielded tokens.

        Waits while only requests under way, which mostly cost less than they may, stand in the way. Once a request did
        not fit, no other is let through, however cheap: its answer would be paid for and thrown away.

        Raises:
            BudgetError: the budget does not suffice.
        """
        worst = self.cost(most)
        async with self._changed:
            await self._changed.wait_for(lambda: self._suffices(worst) or not self._under_way)
            self._stopped = self._stopped or not self._suffices(worst)
            if self._stopped:
                raise BudgetError(self._exhausted(worst))
            self._under_way += 1
            self._reserved += worst
        tokens = Tokens()
        try:
            yield tokens
        finally:
            self._write(tokens)
            async with self._changed:
                self._under_way -= 1
                self._reserved = self._reserved - worst if self._under_way else 0.0  # no residue of rounding
                self._changed.notify_all()

    def _suffices(self, worst: float) -> bool:
        return self._budget is None or self.cost(self._spent) + self._reserved + worst <= self._budget

    def _write(self, tokens: Tokens) -> None:
        if tokens == Tokens():
            return
        self._spent = Tokens(self._spent.input + tokens.input, self._spent.output + tokens.output)
        with usable(self._path):
            self._store.execute("INSERT INTO spending VALUES (?, ?)", (tokens.input, tokens.output))

    def _exhausted(self, worst: float) -> str:
        return (
            f"the model's budget does not suffice: {self.cost(self._spent):.4f} of {self._section}.budget = "
            f"{self._budget} are spent and the next request may cost {worst:.4f}; raise the budget and run again, "
            f"what was answered is kept in {self._path.parent}"
        )
