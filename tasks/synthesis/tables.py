"""Corpus-level numbers: the report rows of a split in one locked DuckDB table, gold answers executed.

QwenLong-L1.5 §3.2, CorpusQA §3.2–3.5. SQL may come from a model one day, so a statement passes an
allow-list of syntax before it reaches a database that can reach neither files nor settings.
"""

import random
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from tasks.corpus.grammar import highest_question, rows, total_question
from tasks.errors import UnsafeQueryError
from tasks.records import AnswerKind, Document, Domain, Split
from tasks.synthesis.names import key
from tasks.synthesis.questions import Harvest, Source

TABLE = "facts"
ROW_LIMIT = 1000
SECONDS_LIMIT = 5.0
LENGTH_LIMIT = 10_000  # characters of a statement
ATTEMPTS_PER_QUESTION = 30
ALLOWED: frozenset[type[exp.Expression]] = frozenset(
    {
        *(exp.Select, exp.From, exp.Table, exp.TableAlias, exp.Join, exp.Subquery, exp.Distinct, exp.Limit),
        *(exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Identifier, exp.Column, exp.Star),
        *(exp.Alias, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Tuple),
        *(exp.And, exp.Or, exp.Not, exp.In, exp.Between, exp.Like, exp.Is, exp.Case, exp.If),
        *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg),
        *(exp.Sum, exp.Max, exp.Min, exp.Avg, exp.Count, exp.Round, exp.Abs),
    }
)


class Drop(StrEnum):
    """Why a query's result is no gold answer. NULL is not 0, and a tie has no first."""

    EMPTY = "the result is empty"
    MISSING = "a value is missing (NULL)"
    NOT_UNIQUE = "the answer is not unique"


@dataclass(frozen=True)
class Row:
    """One cell of the corpus table and the document it was read from."""

    country: str
    measure: str
    count: int
    document_id: str


@dataclass(frozen=True)
class Reading:
    """The rows all documents agree on, and how many (country, measure) cells were in conflict."""

    rows: tuple[Row, ...]
    conflicts: int


def read_rows(documents: Sequence[Document]) -> Reading:
    """Extract the rows of report and table documents; a cell with two different values is discarded."""
    cells: dict[tuple[str, str], list[Row]] = {}
    for document in documents:
        if document.kind in ("report", "table"):
            for country, measure, count in rows(document.text):
                cells.setdefault((key(country), measure), []).append(Row(country, measure, count, document.id))
    agreed = [found[0] for found in cells.values() if len({row.count for row in found}) == 1]
    return Reading(tuple(agreed), len(cells) - len(agreed))


class LockedTable:
    """A DuckDB table `facts` (country, measure, count, document_id) that only plain SELECTs can read."""

    def __init__(self, table: Sequence[Row]) -> None:
        """Load the rows, then lock the door behind them."""
        self._connection = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": "256MB"})
        self._connection.execute(
            "CREATE TABLE facts (country VARCHAR, measure VARCHAR, count HUGEINT, document_id VARCHAR)"
        )
        if table:
            values = [[row.country, row.measure, row.count, row.document_id] for row in table]
            self._connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?)", values)
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one SELECT.

        Raises:
            UnsafeQueryError: the statement is not allowed, fails, takes too long or returns too many rows.
        """
        return self._run(checked(sql).sql("duckdb"))

    def gold(self, sql: str) -> str | Drop:
        """The single value a SELECT returns, as text; `Drop` says why there is none. Errors as in `query`."""
        statement = checked(sql)
        if _cuts_blindly(statement):
            return Drop.NOT_UNIQUE
        found = self._run(_with_ties(statement))
        if not found or (len(found) == 1 and found[0] == (None,) and _aggregates(statement)):
            return Drop.EMPTY
        if len(found) > 1 or len(found[0]) > 1:
            return Drop.NOT_UNIQUE
        return Drop.MISSING if found[0][0] is None else str(found[0][0])

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        try:
            with self._time_limit():
                found = self._connection.execute(sql).fetchmany(ROW_LIMIT + 1)
        except duckdb.Error as error:
            raise UnsafeQueryError(f"{sql!r} failed: {str(error).splitlines()[0]}") from error
        if len(found) > ROW_LIMIT:
            raise UnsafeQueryError(f"{sql!r} returns more than {ROW_LIMIT} rows; narrow it")
        return found

    @contextmanager
    def _time_limit(self) -> Iterator[None]:
        timer = threading.Timer(SECONDS_LIMIT, self._connection.interrupt)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def checked(sql: str) -> exp.Select:
    """Parse a statement and refuse everything but one SELECT over the known table.

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
    for node in parsed[0].walk():
        if type(node) not in ALLOWED:
            raise UnsafeQueryError(f"{sql!r} uses {node.sql('duckdb')!r}, which is not on the allow-list")
        if isinstance(node, exp.Table) and (node.name != TABLE or node.args.get("db")):
            raise UnsafeQueryError(f"{sql!r} reads {node.sql('duckdb')!r}; the only table is {TABLE}")
    return parsed[0]


def _with_ties(statement: exp.Select) -> str:
    """Let a top-n query return all rows that share its last rank, so that a cut through a tie shows."""
    order, limit = statement.args.get("order"), statement.args.get("limit")
    if order is None or limit is None:
        return statement.sql("duckdb")
    rest = statement.copy()
    rest.set("order", None)
    rest.set("limit", None)
    rank, most = f"rank() OVER ({order.sql('duckdb')})", limit.expression.sql("duckdb")
    return f"{rest.sql('duckdb')} QUALIFY {rank} <= {most}"


def _cuts_blindly(statement: exp.Select) -> bool:
    """A LIMIT whose ties `_with_ties` cannot show: without an order, or inside a subquery."""
    limits = list(statement.find_all(exp.Limit))
    own = statement.args.get("limit")
    return any(limit is not own for limit in limits) or (own is not None and statement.args.get("order") is None)


def _aggregates(statement: exp.Select) -> bool:
    return any(expression.find(exp.AggFunc) for expression in statement.expressions)


@dataclass(frozen=True)
class Template:
    """A question over `rows` named rows: the SQL aggregate and the wording."""

    name: str
    aggregate: str
    rows: int
    difficulty: int

    def ask(self, measure: str, countries: Sequence[str]) -> str:
        """The natural-language question."""
        wording = total_question if self.aggregate == "sum" else highest_question
        return wording(measure, countries)

    def sql(self, measure: str, countries: Sequence[str]) -> str:
        """The query whose value is the gold answer."""
        value = exp.func(self.aggregate, exp.column("count"))
        wanted = exp.column("measure").eq(measure) & exp.column("country").isin(*countries)
        return exp.select(value).from_(TABLE).where(wanted).sql("duckdb")


TEMPLATES = (
    Template("total of 2", "sum", 2, 2),
    Template("highest of 2", "max", 2, 1),
    Template("highest of 3", "max", 3, 2),
)


def numeric_questions(documents: Sequence[Document], split: Split, wanted: int, seed: int) -> Harvest:
    """Ask up to `wanted` numbers, the templates in turn, each over rows of at most two documents."""
    source = Source(Domain.CORPUS_NUMERIC, "tables", split, seed)
    reading = read_rows(documents)
    table = LockedTable(reading.rows)
    harvest = Harvest(rejections=Counter({"documents disagree on a cell": reading.conflicts}))
    rng = random.Random(f"{seed} {split} tables")
    asked: set[tuple[str, frozenset[Row]]] = set()
    for attempt in range(wanted * ATTEMPTS_PER_QUESTION if reading.rows else 0):
        if len(harvest.questions) == wanted:
            break
        template = TEMPLATES[attempt % len(TEMPLATES)]
        chosen = _choose_rows(reading.rows, template.rows, rng)
        if chosen is None or (template.aggregate, frozenset(chosen)) in asked:
            continue
        asked.add((template.aggregate, frozenset(chosen)))
        if template.aggregate == "max" and len({row.count for row in chosen}) == 1:
            harvest.rejections["all numbers are equal"] += 1  # any row read would answer
            continue
        _ask(source, table, template, chosen, harvest)
    return harvest


def _choose_rows(table: Sequence[Row], number: int, rng: random.Random) -> list[Row] | None:
    """A random row and others of its measure, from its document and at most one other; None if too few."""
    first = rng.choice(table)
    same = [row for row in table if row.measure == first.measure and row != first]
    if not same:
        return None
    homes = {first.document_id, rng.choice(same).document_id}
    near = [row for row in same if row.document_id in homes]
    return [first, *rng.sample(near, number - 1)] if len(near) >= number - 1 else None


def _ask(source: Source, table: LockedTable, template: Template, chosen: Sequence[Row], harvest: Harvest) -> None:
    measure, countries = chosen[0].measure, [row.country for row in chosen]
    sql = template.sql(measure, countries)
    gold = table.gold(sql)
    if isinstance(gold, Drop):
        harvest.rejections[gold.value] += 1
        return
    harvest.questions.append(
        source.question(
            template.ask(measure, countries),
            gold,
            kind=AnswerKind.NUMBER,
            evidence=list(dict.fromkeys(row.document_id for row in chosen)),
            difficulty=template.difficulty,
            facts=[(measure, key(country)) for country in countries],
            provenance={"kind": "sql", "template": template.name, "sql": sql},
        )
    )
