"""The corpus table in a locked DuckDB that only plain SELECTs can read.

SQL may come from a model. So a statement passes an allow-list of syntax before it reaches a database that can reach
neither files nor settings, within limits of time, memory and rows.
"""

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from tasks.corpus.columns import Cell, Column, decimal_places
from tasks.errors import UnsafeQueryError

TABLE = "facts"
ROW_LIMIT = 1000
SECONDS_LIMIT = 5.0
LENGTH_LIMIT = 10_000  # characters of a statement
MEMORY_LIMIT = "256MB"
CHUNK = 100  # rows of one INSERT
ALLOWED: frozenset[type[exp.Expr]] = frozenset(
    {
        *(exp.Select, exp.From, exp.Table, exp.TableAlias, exp.Join, exp.Subquery, exp.Distinct, exp.Limit),
        *(exp.With, exp.CTE, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Identifier, exp.Column),
        *(exp.Star, exp.Alias, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Tuple),
        *(exp.And, exp.Or, exp.Not, exp.In, exp.Between, exp.Like, exp.ILike, exp.Is, exp.Exists, exp.Case, exp.If),
        *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg),
        *(exp.Sum, exp.Max, exp.Min, exp.Avg, exp.Count, exp.Filter, exp.Round, exp.Abs, exp.Coalesce, exp.Nullif),
        *(exp.Lower, exp.Upper, exp.Trim, exp.Year, exp.Month, exp.Extract, exp.Var, exp.TimeToStr),
        *(exp.Cast, exp.DataType, exp.DataTypeParam),
    }
)
CASTS = frozenset(
    {exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL, exp.DType.INT, exp.DType.BIGINT, exp.DType.INT128}
    | {exp.DType.DATE, exp.DType.VARCHAR, exp.DType.TEXT}
)

Row = tuple[Any, ...]


class Drop(StrEnum):
    """Why a query's result is no gold answer. NULL is not 0, and a tie has no first."""

    EMPTY = "the result is empty"
    MISSING = "a value is missing (NULL)"
    NOT_UNIQUE = "the answer is not unique"


class LockedTable:
    """A DuckDB table `facts` with the given columns."""

    def __init__(self, columns: Sequence[Column]) -> None:
        """Load the columns, all of one length, then lock the door behind them."""
        self._connection = duckdb.connect(
            ":memory:", config={"threads": 1, "memory_limit": MEMORY_LIMIT, "max_temp_directory_size": "0B"}
        )
        self.columns = tuple(columns)
        self._connection.execute(definition(columns))
        self._fill(list(zip(*(column.values for column in columns), strict=True)))
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def _fill(self, rows: Sequence[tuple[Cell, ...]]) -> None:
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            places = ", ".join(f"({', '.join('?' * len(row))})" for row in chunk)
            self._connection.execute(
                f"INSERT INTO {TABLE} VALUES {places}",  # noqa: S608  only question marks
                [cell for row in chunk for cell in row],
            )

    def query(self, sql: str) -> list[Row]:
        """Run one SELECT.

        Raises:
            UnsafeQueryError: the statement is not allowed, fails, takes too long or returns too many rows.
        """
        return self._run(_written(checked(sql)))

    def result(self, sql: str) -> list[Row] | Drop:
        """As `query`, but a LIMIT that cuts through a tie has no result. A missing value stays None."""
        statement = checked(sql)
        if _cuts_blindly(statement):
            return Drop.NOT_UNIQUE
        found = self._run(_written(_with_ties(statement)))
        limit = statement.args.get("limit")
        if limit is not None and len(found) > int(limit.expression.name):
            return Drop.NOT_UNIQUE
        if found == [(None,)] and _aggregates(statement):
            return Drop.EMPTY
        return found

    def _run(self, sql: str) -> list[Row]:
        try:
            with self._time_limit():
                found = self._connection.execute(sql).fetchmany(ROW_LIMIT + 1)
        except duckdb.Error as error:
            raise UnsafeQueryError(f"{sql!r} failed: {str(error).splitlines()[0]}") from error
        if len(found) > ROW_LIMIT:
            raise UnsafeQueryError(f"{sql!r} returns more than {ROW_LIMIT} rows; narrow it")
        return [tuple(None if _no_number(value) else value for value in row) for row in found]

    @contextmanager
    def _time_limit(self) -> Iterator[None]:
        timer = threading.Timer(SECONDS_LIMIT, self._connection.interrupt)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def definition(columns: Sequence[Column]) -> str:
    """The CREATE TABLE statement, which also shows a model what there is."""
    listed = ", ".join(f"{quoted(column.name)} {_type_of(column)}" for column in columns)
    return f"CREATE TABLE {TABLE} ({listed})"


def quoted(name: str) -> str:
    """A column name that is data: any text, safe in a statement."""
    return exp.to_identifier(name, quoted=True).sql("duckdb")


def _type_of(column: Column) -> str:
    match column.kind:
        case "integer":
            return "HUGEINT"
        case "decimal":
            return f"DECIMAL(38, {decimal_places(column.values)})"
        case "date":
            return "DATE"
        case "text" | "month":
            return "VARCHAR"


def _no_number(value: object) -> bool:
    """A division by zero."""
    return isinstance(value, float) and not math.isfinite(value)


def checked(sql: str) -> exp.Select:
    """Parse a statement and refuse everything but one SELECT over the known table and its own CTEs.

    Raises:
        UnsafeQueryError: several statements, another statement, another table, or syntax outside the
            allow-list.
    """
    if len(sql) > LENGTH_LIMIT:
        raise UnsafeQueryError(f"the statement has {len(sql)} characters; at most {LENGTH_LIMIT} are allowed")
    try:
        parsed = sqlglot.parse(sql, read="duckdb")
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise UnsafeQueryError(f"{sql!r} is not readable SQL") from error
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Select):
        raise UnsafeQueryError(f"{sql!r} is not a single SELECT; only that is allowed")
    tables = {TABLE, *(part.alias for part in parsed[0].find_all(exp.CTE))}
    for node in parsed[0].walk():
        problem = _problem(node, tables)
        if problem:
            raise UnsafeQueryError(f"{sql!r} uses {_written(node)!r}, {problem}")
    return parsed[0]


def _problem(node: exp.Expr, tables: set[str]) -> str:
    """Why a part of a statement is refused, or ""."""
    if type(node) not in ALLOWED:
        return "which is not on the allow-list"
    if isinstance(node, exp.Table) and (node.name not in tables or node.args.get("db")):
        return f"but the only table is {TABLE}"
    if isinstance(node, exp.With) and node.args.get("recursive"):
        return "but recursion may never end"
    if isinstance(node, exp.DataType) and node.this not in CASTS:
        return f"but only numbers, dates and texts are cast to, not {node.this}"
    if isinstance(node, exp.Limit) and not (
        isinstance(node.expression, exp.Literal) and node.expression.name.isdecimal()
    ):
        return "but a limit is a whole number"
    return ""


def _written(node: exp.Expr) -> str:
    try:
        return node.sql("duckdb")
    except RecursionError as error:
        raise UnsafeQueryError("the statement is nested too deeply") from error


def _with_ties(statement: exp.Select) -> exp.Select:
    """Let a top-n query return all rows that share its last rank, so that a cut through a tie shows."""
    order, limit = statement.args.get("order"), statement.args.get("limit")
    if order is None or limit is None:
        return statement
    rest = statement.copy()
    rest.set("order", None)
    rest.set("limit", None)
    rank = exp.Window(this=exp.func("rank"), order=order.copy())
    rest.set("qualify", exp.Qualify(this=exp.LTE(this=rank, expression=limit.expression.copy())))
    return rest


def _cuts_blindly(statement: exp.Select) -> bool:
    """A LIMIT whose ties `_with_ties` cannot show: without an order, or inside a subquery."""
    limits = list(statement.find_all(exp.Limit))
    own = statement.args.get("limit")
    return any(limit is not own for limit in limits) or (own is not None and statement.args.get("order") is None)


def _aggregates(statement: exp.Select) -> bool:
    return any(expression.find(exp.AggFunc) for expression in statement.expressions)
