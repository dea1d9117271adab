"""The result of a query becomes the text of a gold answer (CorpusQA §3.5), or the reason why it is none."""

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from enum import StrEnum

from tasks.corpus.formats.cells import cell_text
from tasks.records import AnswerKind
from tasks.synthesis.tables.engine import Drop, Row

_EXACT = Context(prec=100)
_CENT = Decimal("0.01")
MOST_LISTED = 20  # elements of a list answer


class Form(StrEnum):
    """How an answer is written."""

    STRING = "string"
    LIST = "list"
    INTEGER = "integer"
    NUMBER = "number"
    PERCENT = "percent"
    MONTH = "month"

    @property
    def kind(self) -> AnswerKind:
        """How the reward compares it."""
        return {
            Form.STRING: AnswerKind.TEXT,
            Form.LIST: AnswerKind.LIST,
            Form.PERCENT: AnswerKind.PERCENT,
            Form.MONTH: AnswerKind.DATE,
        }.get(self, AnswerKind.NUMBER)

    @property
    def instruction(self) -> str:
        """What a question says about it."""
        return {
            Form.STRING: "Answer with the name.",
            Form.LIST: "Answer with a list; if there is none, answer [].",
            Form.INTEGER: "Answer with a whole number.",
            Form.NUMBER: "Answer with a number rounded to two decimals.",
            Form.PERCENT: "Answer in percent, rounded to two decimals.",
            Form.MONTH: "Answer in the form YYYY-MM.",
        }[self]


class Unfit(StrEnum):
    """Why a known result is no good answer."""

    WRONG_FORM = "the result has another form than was asked for"
    ROUNDED_AWAY = "two decimals are too few for the answer"
    TOO_LONG = "the answer lists too much"


def gold(result: Sequence[Row] | Drop, form: Form) -> tuple[str, ...] | Drop | Unfit:
    """The answer as text; a list may be empty.

    Two decimals are rounded half up. A number that rounding makes 0.00 is no answer: anything small would do.
    """
    if isinstance(result, Drop):
        return result
    if any(len(row) != 1 for row in result):
        return Drop.NOT_UNIQUE
    values = [row[0] for row in result]
    if any(value is None for value in values):
        return Drop.MISSING
    if form is Form.LIST:
        return tuple(map(_element, values)) if len(values) <= MOST_LISTED else Unfit.TOO_LONG
    if not values:
        return Drop.EMPTY
    return _single(values[0], form) if len(values) == 1 else Drop.NOT_UNIQUE


def _element(value: object) -> str:
    """All digits of a number, without the zeros that its column adds."""
    return cell_text(value.normalize(_EXACT) if isinstance(value, Decimal) else value)


def _single(value: object, form: Form) -> tuple[str, ...] | Unfit:
    number = form in (Form.INTEGER, Form.NUMBER, Form.PERCENT)
    if number != (isinstance(value, int | float | Decimal) and not isinstance(value, bool)):
        return Unfit.WRONG_FORM
    if not number:
        return (cell_text(value)[: len("YYYY-MM")] if form is Form.MONTH else str(value),)
    exact = Decimal(cell_text(value))
    if form is Form.INTEGER:
        return (str(int(exact)),) if exact == exact.to_integral_value(context=_EXACT) else Unfit.WRONG_FORM
    rounded = exact.quantize(_CENT, ROUND_HALF_UP, _EXACT)
    return (str(rounded),) if rounded or not exact else Unfit.ROUNDED_AWAY
