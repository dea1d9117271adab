"""What can be asked of a table, easy to hard (CorpusQA §3.4): each template words a question and writes its query.

A question names the entities it is about. So it is the same question in any company of other documents.
"""

import datetime as dt
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import partial
from operator import sub, truediv
from typing import Any

from sqlglot import exp

from tasks.corpus.columns import Cell, Column
from tasks.corpus.formats.cells import cell_text
from tasks.synthesis.tables.answers import Form
from tasks.synthesis.tables.corpus_table import ENTITY, is_added
from tasks.synthesis.tables.engine import TABLE

EMPTY_SHARE = 0.05  # of the questions for a list, that ask for what nothing has
LEFT_OUT = "Leave out those for which no value is given."
LATEST = "Where documents disagree, the latest one counts."
LONGEST_GROUP = 40  # characters of a text by which rows are grouped


class Need(StrEnum):
    """What a template needs a column to be."""

    NUMBER = "number"
    AMOUNT = "amount"  # a number that is added up
    DATE = "date"
    GROUP = "group"  # a text that several rows share

    def admits(self, column: Column) -> bool:
        """Whether a column is of this sort."""
        match self:
            case Need.NUMBER:
                return column.kind in ("integer", "decimal")
            case Need.AMOUNT:
                return is_added(column)
            case Need.DATE:
                return column.kind in ("date", "month")
            case Need.GROUP:
                return column.kind == "text" and _groups(column)


def _groups(column: Column) -> bool:
    present = [value for value in column.values if isinstance(value, str)]
    wordy = all(len(value) <= LONGEST_GROUP and value[0].isalpha() for value in present)
    return wordy and 1 < len(set(present)) <= len(present) / 2


@dataclass(frozen=True)
class Choice:
    """The cells that a question is about: some rows in some columns, in the order in which they are named."""

    entities: tuple[str, ...]
    columns: tuple[Column, ...]  # cut to these rows
    rng: random.Random
    disputed: bool = False  # a later document overrules another

    @property
    def names(self) -> str:
        """The entities as a text lists them."""
        mark = "; " if any(set(",;") & set(name) or " and " in name for name in self.entities) else ", "
        return f"{mark.join(self.entities[:-1])} and {self.entities[-1]}"

    @property
    def scope(self) -> exp.Expr:
        """The condition that a row is one of these."""
        return exp.column(ENTITY, quoted=True).isin(*self.entities)

    def select(self, *wanted: exp.Expr, where: exp.Expr | None = None) -> exp.Select:
        """A query over these rows."""
        return exp.select(*wanted).from_(TABLE).where(self.scope, *([where] if where is not None else []))

    def cut(self, column: int, above: int) -> Cell:
        """A value that `above` rows exceed at least; None where values are too few or too equal."""
        values: list[Any] = sorted(value for value in self.columns[column].values if value is not None)
        below = [value for value in dict.fromkeys(values) if value < values[-above:][0]]
        return self.rng.choice(below) if below else None


@dataclass(frozen=True)
class Draft:
    """A question, the query that answers it, the form of the answer, and what the question adds on how to answer."""

    text: str
    sql: str
    form: Form
    instruction: str = ""


@dataclass(frozen=True)
class Template:
    """A kind of question. `rows` and `documents` are the fewest and the most that it is about."""

    name: str
    difficulty: int
    needs: tuple[Need, ...]
    rows: tuple[int, int]
    documents: tuple[int, int]
    draft: Callable[[Choice], Draft | None]


def column_of(column: Column) -> exp.Column:
    """A column in a query, whatever its name is."""
    return exp.column(column.name, quoted=True)


def label(column: Column) -> str:
    """A column in a question, with its unit."""
    unit = f" (in {column.unit})" if column.unit and column.unit not in column.name else ""
    return f'"{column.name}"{unit}'


def literal(value: Cell) -> exp.Expr:
    """A value in a query."""
    if isinstance(value, dt.date):
        return exp.cast(exp.Literal.string(value.isoformat()), exp.DType.DATE)
    return exp.Literal.number(cell_text(value)) if isinstance(value, int | Decimal) else exp.Literal.string(str(value))


def shown(value: Cell) -> str:
    """A value in a question."""
    return f"{value:,}" if isinstance(value, int | Decimal) else str(value)


def number_form(*columns: Column) -> Form:
    """How a sum, a difference or a value of these columns is written."""
    return Form.INTEGER if all(column.kind == "integer" for column in columns) else Form.NUMBER


def _aggregate(name: str, column: Column) -> exp.Expr:
    return exp.func(name, column_of(column))


def _entity() -> exp.Expr:
    return exp.column(ENTITY, quoted=True)


def _draft(choice: Choice, text: str, query: exp.Select, form: Form) -> Draft:
    missing = any(value is None for column in choice.columns for value in column.values)
    notes = [LEFT_OUT] * missing + [LATEST] * choice.disputed
    return Draft(text, query.sql("duckdb"), form, " ".join([*notes, form.instruction]))


# Easy: one column, few rows.


def _lookup(choice: Choice) -> Draft:
    (column,) = choice.columns
    text = f"What are the values of {label(column)} of {choice.names}?"
    return _draft(choice, text, choice.select(column_of(column), where=_present(column)), Form.LIST)


def _largest(choice: Choice) -> Draft:
    (column,) = choice.columns
    query = choice.select(_entity(), where=_present(column)).order_by(column_of(column).desc()).limit(1)
    return _draft(choice, f"Which of {choice.names} has the largest {label(column)}?", query, Form.STRING)


def _value(word: str, name: str, choice: Choice) -> Draft | None:
    (column,) = choice.columns
    if name in ("max", "min") and len(set(column.values)) == 1:
        return None  # any row read would answer
    form = Form.NUMBER if name == "avg" else number_form(column)
    text = f"What is the {word} of {label(column)} over {choice.names}?"
    return _draft(choice, text, choice.select(_aggregate(name, column)), form)


# Medium: one condition, ranks, dates.


def _above(listed: bool, choice: Choice) -> Draft | None:
    (column,) = choice.columns
    present: list[Any] = [value for value in column.values if value is not None]
    empty = listed and present and choice.rng.random() < EMPTY_SHARE
    bound = max(present) if empty else choice.cut(0, 1)
    if bound is None:
        return None
    return _condition(listed, choice, f"have {label(column)} above {shown(bound)}", column_of(column) > literal(bound))


def _before(listed: bool, choice: Choice) -> Draft | None:
    (column,) = choice.columns
    bound = choice.cut(0, 1)
    if bound is None:
        return None
    condition = column_of(column) > literal(bound)
    return _condition(listed, choice, f"have {label(column)} later than {shown(bound)}", condition)


def _in_group(listed: bool, choice: Choice) -> Draft | None:
    (column,) = choice.columns
    group = choice.rng.choice([value for value in column.values if value is not None] or [None])
    if group is None or len(set(column.values)) == 1:
        return None
    return _condition(listed, choice, f'have "{group}" as {label(column)}', column_of(column).eq(literal(group)))


def _condition(listed: bool, choice: Choice, words: str, condition: exp.Expr) -> Draft:
    if listed:
        return _draft(choice, f"Which of {choice.names} {words}?", choice.select(_entity(), where=condition), Form.LIST)
    query = choice.select(exp.func("count", exp.Star()), where=condition)
    return _draft(choice, f"How many of {choice.names} {words}?", query, Form.INTEGER)


def _top(choice: Choice) -> Draft:
    (column,) = choice.columns
    number = choice.rng.randint(2, len(choice.entities) - 2)
    query = choice.select(_entity(), where=_present(column)).order_by(column_of(column).desc()).limit(number)
    text = f"Which {number} of {choice.names} have the largest {label(column)}?"
    return _draft(choice, text, query, Form.LIST)


def _spread(choice: Choice) -> Draft:
    (column,) = choice.columns
    query = choice.select(_aggregate("max", column) - _aggregate("min", column))
    text = f"By how much does the largest {label(column)} of {choice.names} exceed the smallest?"
    return _draft(choice, text, query, number_form(column))


def _month(word: str, name: str, choice: Choice) -> Draft | None:
    (column,) = choice.columns
    if len(set(column.values)) == 1:
        return None
    value = _aggregate(name, column)
    month = exp.func("strftime", value, exp.Literal.string("%Y-%m"), dialect="duckdb")
    query = choice.select(month if column.kind == "date" else value)
    return _draft(choice, f"What is the {word} {label(column)} of {choice.names}?", query, Form.MONTH)


# Hard: several steps.


def _filtered(word: str, name: str, choice: Choice) -> Draft | None:
    given, asked = choice.columns
    bound = choice.cut(0, 2)
    if bound is None:
        return None
    query = choice.select(_aggregate(name, asked), where=column_of(given) > literal(bound))
    text = (
        f"Take those of {choice.names} that have {label(given)} {_more(given)} {shown(bound)}. "
        f"What is the {word} of their {label(asked)}?"
    )
    return _draft(choice, text, query, Form.NUMBER if name == "avg" else number_form(asked))


def _best_filtered(choice: Choice) -> Draft | None:
    given, asked = choice.columns
    bound = choice.cut(0, 2)
    if bound is None:
        return None
    condition = exp.and_(column_of(given) > literal(bound), _present(asked))
    query = choice.select(_entity(), where=condition).order_by(column_of(asked).desc()).limit(1)
    text = (
        f"Of those of {choice.names} that have {label(given)} {_more(given)} {shown(bound)}, "
        f"which has the largest {label(asked)}?"
    )
    return _draft(choice, text, query, Form.STRING)


def _both(choice: Choice) -> Draft | None:
    first, second = choice.columns
    low, high = choice.cut(0, 1), choice.cut(1, 1)
    if low is None or high is None:
        return None
    condition = exp.and_(column_of(first) > literal(low), column_of(second) <= literal(high))
    words = f"have {label(first)} above {shown(low)} and {label(second)} of at most {shown(high)}"
    return _condition(True, choice, words, condition)


def _share(choice: Choice) -> Draft | None:
    (column,) = choice.columns
    if any(isinstance(value, int | Decimal) and value < 0 for value in column.values):
        return None
    one = exp.func("sum", column_of(column))
    part = exp.Filter(this=one, expression=exp.Where(this=_entity().eq(choice.entities[0])))
    query = choice.select(exp.Literal.number(100) * part / one.copy())
    text = f"What share of the total {label(column)} of {choice.names} does {choice.entities[0]} have?"
    return _draft(choice, text, query, Form.PERCENT)


def _share_above(choice: Choice) -> Draft | None:
    (column,) = choice.columns
    bound = choice.cut(0, 1)
    if bound is None:
        return None
    number = exp.func("count", column_of(column))
    part = exp.Filter(this=number, expression=exp.Where(this=column_of(column) > literal(bound)))
    query = choice.select(exp.Literal.number(100) * part / number.copy())
    text = f"What share of {choice.names} has {label(column)} above {shown(bound)}?"
    return _draft(choice, text, query, Form.PERCENT)


def _compared(word: str, combine: Callable[[exp.Expr, exp.Expr], exp.Expr], name: str, choice: Choice) -> Draft | None:
    """The aggregate of the rows above a value, compared with that of the others."""
    given, asked = choice.columns
    bound = choice.cut(0, 1)
    if bound is None:
        return None
    more = column_of(given) > literal(bound)
    less = column_of(given) <= literal(bound)
    above, others = (exp.Filter(this=_aggregate(name, asked), expression=exp.Where(this=side)) for side in (more, less))
    aggregate = "average" if name == "avg" else "total"
    text = (
        f"Divide {choice.names} into those that have {label(given)} above {shown(bound)} and the others. "
        f"{word.format(f'the {aggregate} {label(asked)} of the former', 'that of the others')}?"
    )
    return _draft(choice, text, choice.select(combine(above, others)), Form.NUMBER)


def _group_total(choice: Choice) -> Draft | None:
    group, asked = choice.columns
    if len({value for value in group.values if value is not None}) < 2:
        return None
    total = _aggregate("sum", asked)
    query = (
        choice.select(column_of(group), where=_present(group))
        .group_by(column_of(group))
        .order_by(total.desc())
        .limit(1)
    )
    text = f"Group {choice.names} by {label(group)}. Which group has the largest total {label(asked)}?"
    return _draft(choice, text, query, Form.STRING)


def _present(column: Column) -> exp.Expr:
    return column_of(column).is_(exp.null()).not_()


def _more(column: Column) -> str:
    return "later than" if column.kind in ("date", "month") else "above"


EASY, MEDIUM, HARD = 1, 2, 3
FEW, SOME, MANY = (2, 3), (4, 8), (5, 12)  # rows
SPREAD = (2, 12)  # documents
N, A, D, G = Need.NUMBER, Need.AMOUNT, Need.DATE, Need.GROUP


def _templates(
    level: int, rows: tuple[int, int], *drafts: tuple[str, tuple[Need, ...], Callable[[Choice], Draft | None]]
) -> list[Template]:
    return [Template(name, level, needs, rows, SPREAD, draft) for name, needs, draft in drafts]


TEMPLATES: Sequence[Template] = (
    *_templates(
        EASY,
        FEW,
        ("lookup", (N,), _lookup),
        ("largest", (N,), _largest),
        ("total", (A,), partial(_value, "total", "sum")),
        ("highest value", (N,), partial(_value, "highest value", "max")),
    ),
    *_templates(
        MEDIUM,
        SOME,
        ("count above", (N,), partial(_above, False)),
        ("list above", (N,), partial(_above, True)),
        ("top n", (N,), _top),
        ("average", (N,), partial(_value, "average", "avg")),
        ("lowest value", (N,), partial(_value, "lowest value", "min")),
        ("spread", (N,), _spread),
        ("earliest", (D,), partial(_month, "earliest", "min")),
        ("latest", (D,), partial(_month, "latest", "max")),
        ("list later", (D,), partial(_before, True)),
        ("count later", (D,), partial(_before, False)),
        ("list group", (G,), partial(_in_group, True)),
        ("count group", (G,), partial(_in_group, False)),
    ),
    *_templates(
        HARD,
        MANY,
        ("total of those above", (N, A), partial(_filtered, "total", "sum")),
        ("average of those above", (N, N), partial(_filtered, "average", "avg")),
        ("total of those later", (D, A), partial(_filtered, "total", "sum")),
        ("largest of those above", (N, N), _best_filtered),
        ("two conditions", (N, N), _both),
        ("share of total", (A,), _share),
        ("share above", (N,), _share_above),
        ("ratio", (N, A), partial(_compared, "What is {0}, divided by {1}", truediv, "sum")),
        ("difference of averages", (N, N), partial(_compared, "What is {0}, minus {1}", sub, "avg")),
        ("largest group", (G, A), _group_total),
    ),
)
