"""Money is counted to the token, and held back while requests are under way."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from tasks.errors import InputError, PipelineError
from tasks.generation.ledger import Ledger, Tokens


def ledger(folder: Path, budget: float | None = None) -> Ledger:
    return Ledger(folder / "spending.sqlite", 3.0, 15.0, budget)


async def spend(book: Ledger, most: Tokens, read: int, written: int) -> None:
    async with book.reserved(most) as spent:
        spent.input, spent.output = read, written


def test_cost_is_price_times_tokens_by_the_million(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    asyncio.run(spend(book, Tokens(9, 9), 1_000_000, 200_000))
    assert book.counts() == {"input_tokens": 1_000_000, "output_tokens": 200_000, "cost": 3.0 + 3.0}
    assert ledger(tmp_path).counts() == book.counts()
    assert ledger(tmp_path / "other").counts() == {"input_tokens": 0, "output_tokens": 0, "cost": 0.0}


def test_a_request_waits_for_those_under_way_before_it_is_refused(tmp_path: Path) -> None:
    """Of a budget of 10 the first may take 6 and takes 3: the second, which may take 6, waits and fits."""
    order: list[str] = []
    most = Tokens(2_000_000, 0)

    async def first(book: Ledger) -> None:
        async with book.reserved(most) as spent:
            await asyncio.sleep(0.01)
            spent.input = 1_000_000
            order.append("first ends")

    async def second(book: Ledger) -> None:
        await asyncio.sleep(0)
        async with book.reserved(most):
            order.append("second begins")

    async def both() -> None:
        book = ledger(tmp_path, budget=10.0)
        await asyncio.gather(first(book), second(book))
        with pytest.raises(PipelineError, match=r"3\.0000 of synthesis\.writer\.budget = 10\.0 .* may cost 9\.0000"):
            await spend(book, Tokens(3_000_000, 0), 0, 0)
        with pytest.raises(PipelineError):  # it would fit, but what comes after a refusal is not used
            await spend(book, Tokens(1, 0), 0, 0)

    asyncio.run(both())
    assert order == ["first ends", "second begins"]


def test_a_failed_request_frees_what_was_held_back(tmp_path: Path) -> None:
    async def fail(book: Ledger) -> None:
        with pytest.raises(OSError, match="lost"):
            async with book.reserved(Tokens(3_000_000, 0)):
                raise OSError("lost")
        await spend(book, Tokens(3_000_000, 0), 0, 1)

    book = ledger(tmp_path, budget=9.0)
    asyncio.run(fail(book))
    assert book.counts() == {"input_tokens": 0, "output_tokens": 1, "cost": 15e-6}


def test_free_models_need_no_budget(tmp_path: Path) -> None:
    book = Ledger(tmp_path / "s.sqlite", 0.0, 0.0, 0.01)
    asyncio.run(spend(book, Tokens(10**9, 10**9), 10**9, 10**9))
    assert book.counts()["cost"] == 0.0


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "spending.sqlite").write_text("no database at all, and long enough to have a header " * 20)
    with pytest.raises(InputError, match=r"spending\.sqlite cannot be read or written"):
        ledger(tmp_path)
    with pytest.raises(sqlite3.DatabaseError):
        sqlite3.connect(tmp_path / "spending.sqlite").execute("SELECT 1 FROM spending")
