"""A predicted SELECT is right if it returns what the gold SELECT returns, as in Spider's execution accuracy.

Rows are a bag: repetitions count, and order only if the gold statement has an ORDER BY, where rows with equal keys may
change places. Columns count by place, not by name. Values have types: 5 is 5.0, neither is '5', and NULL is only NULL.

Statements run in the table's own locked engine (tasks/synthesis/tables/engine.py: allow-list, no files, limits of time,
memory and rows). A stored question carries the executed answer and no table, so this is no answer kind: who has the
table at hand calls `examine_query` in place of `rules.examine`.
"""

from collections import Counter
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any, Protocol

import sqlglot
from sqlglot import exp

from tasks.errors import UnsafeQueryError
from tasks.records import Finish
from tasks.rewards.extraction import extract_code, is_unfinished
from tasks.rewards.reasons import Checked, Reason

FLOAT_DIGITS = 12  # significant; sums of doubles differ beyond them with the order of the rows
_ROUNDED = Context(prec=FLOAT_DIGITS)
Row = tuple[Any, ...]


class Table(Protocol):
    """What can be queried; `tasks.synthesis.tables.engine.LockedTable` is one."""

    def query(self, sql: str) -> list[Row]:
        """Run one SELECT.

        Raises:
            UnsafeQueryError: the statement is not allowed, fails, takes too long or returns too many rows.
        """


def examine_query(reply: str, finish: Finish, gold: str, table: Table) -> Checked:
    """Run the statement that a reply states (its last fenced block, box or "the answer is") beside the gold one."""
    query = extract_code(reply, finish)
    if query is None:
        return Checked(Reason.TRUNCATED if is_unfinished(reply, finish) else Reason.NO_ANSWER)
    return Checked(compare_queries(query, gold, table), query)


def compare_queries(query: str, gold: str, table: Table) -> Reason:
    """EQUAL, DIFFERENT or QUERY_FAILED.

    NO_GOLD if the gold statement fails, or returns nothing: so would a statement about anything.
    """
    try:
        expected = table.query(_statement(gold))
    except UnsafeQueryError:
        return Reason.NO_GOLD
    if not expected:
        return Reason.NO_GOLD
    try:
        found = table.query(_statement(query))
    except UnsafeQueryError:
        return Reason.QUERY_FAILED
    return Reason.EQUAL if _same(found, expected, _order(gold)) else Reason.DIFFERENT


def _same(found: Sequence[Row], expected: Sequence[Row], order: Sequence[int] | None) -> bool:
    """Whether two results are equal. `order`: the columns that sort them, empty if they are not known, None if none."""
    rounded = any(isinstance(value, float) for row in (*found, *expected) for value in row)
    left, right = ([tuple(_typed(value, rounded) for value in row) for row in rows] for rows in (found, expected))
    if order == []:
        return left == right
    keys = [[tuple(row[place] for place in order or ()) for row in rows] for rows in (left, right)]
    return Counter(left) == Counter(right) and keys[0] == keys[1]


def _typed(value: Any, rounded: bool) -> tuple[str, Any]:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        number = Decimal(value)
        return "number", _ROUNDED.plus(number) if rounded else number
    return type(value).__name__, value


def _order(sql: str) -> list[int] | None:
    """The places of the columns that sort a statement's result; [] if one is not among them, None without ORDER BY."""
    statement = sqlglot.parse_one(_statement(sql), read="duckdb")
    assert isinstance(statement, exp.Select)  # the engine has run it
    order = statement.args.get("order")
    if order is None:
        return None
    names = [{part.alias_or_name.lower(), part.unalias().sql("duckdb").lower()} for part in statement.expressions]
    places = [_place(ordered.this, names) for ordered in order.expressions]
    return [] if None in places else [place for place in places if place is not None]


def _place(key: exp.Expr, names: Sequence[set[str]]) -> int | None:
    if isinstance(key, exp.Literal) and key.is_int:
        return int(key.name) - 1
    written = (
        {key.sql("duckdb").lower(), key.name.lower()} if isinstance(key, exp.Column) else {key.sql("duckdb").lower()}
    )
    return next((place for place, name in enumerate(names) if name & written), None)


def _statement(sql: str) -> str:
    return sql.strip().rstrip(";")
