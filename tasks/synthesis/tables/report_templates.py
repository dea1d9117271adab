"""What the tiny profile asks of its reports: its base model speaks these questions only."""

from collections.abc import Callable, Sequence
from functools import partial

from sqlglot import exp

from tasks.corpus.grammar import highest_question, total_question
from tasks.synthesis.tables.answers import Form
from tasks.synthesis.tables.templates import Choice, Draft, Need, Template, column_of


def _aggregate(name: str, wording: Callable[[str, Sequence[str]], str], choice: Choice) -> Draft | None:
    (column,) = choice.columns
    if name == "max" and len(set(column.values)) == 1:
        return None  # any row read would answer
    query = choice.select(exp.func(name, column_of(column)))
    return Draft(wording(column.name, choice.entities), query.sql("duckdb"), Form.INTEGER)


_TOTAL, _HIGHEST = partial(_aggregate, "sum", total_question), partial(_aggregate, "max", highest_question)
REPORT_TEMPLATES = (
    Template("total of 2", 2, (Need.AMOUNT,), (2, 2), (1, 2), _TOTAL),
    Template("highest of 2", 1, (Need.NUMBER,), (2, 2), (1, 2), _HIGHEST),
    Template("highest of 3", 2, (Need.NUMBER,), (3, 3), (1, 2), _HIGHEST),
)
