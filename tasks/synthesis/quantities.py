"""Dates and numbers as intervals, and the vaguer ways to say them: 1947 is in "the late 1940s"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache
from math import inf

from tasks.corpus.names import NAMES_KEPT, folded

DATE = "date"  # the unit of days, counted as `date.toordinal` does
BARE = "#"  # the unit of a number with nothing beside it

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = rf"(?P<name>{'|'.join(_MONTHS)})"
_FORMS = tuple(
    re.compile(form)
    for form in (
        r"(?P<year>[12]\d{3})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?)?",
        rf"(?:(?P<day>\d{{1,2}}) )?{_MONTH},? (?P<year>[12]\d{{3}})",
        rf"{_MONTH} (?P<day>\d{{1,2}}),? (?P<year>[12]\d{{3}})",
        r"(?P<year>[12]\d{3})年(?:(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})日)?)?",
    )
)
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(
    r"(?P<before>[$€£¥]? ?)(?P<number>-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)(?P<after>(?:%| ?[^\d\s.,][^\d.,]*)?)"
)


@dataclass(frozen=True)
class Quantity:
    """All values from `low` to `high`, both included, in one unit: days of a date, or whatever stands by the number."""

    low: float
    high: float
    unit: str

    def overlaps(self, other: "Quantity") -> bool:
        """Whether both may be the same value."""
        return self.unit == other.unit and self.low <= other.high and other.low <= self.high

    @property
    def year(self) -> int | None:
        """The year of a date that lies within one."""
        years = {date.fromordinal(int(end)).year for end in (self.low, self.high)} if self.unit == DATE else set()
        return years.pop() if len(years) == 1 else None


def read_date(text: str) -> Quantity | None:
    """A year, month or day that is all of `text`, in ISO form or in English or Chinese words; else None."""
    if not _DIGIT.search(text):
        return None
    for form in _FORMS:
        if match := form.fullmatch(folded(text).strip()):
            part = match.groupdict()
            month = _MONTHS.index(part["name"]) + 1 if part.get("name") else int(part.get("month") or 0)
            return _calendar(int(part["year"]), month, int(part.get("day") or 0))
    return None


def _calendar(year: int, month: int, day: int) -> Quantity | None:
    """The days of a year, month or day, 0 where not given; None for a date that no calendar has."""
    try:
        first = date(year, month or 1, day or 1)
    except ValueError:
        return None
    if day:
        return Quantity(first.toordinal(), first.toordinal(), DATE)
    following = date(year, month + 1, 1) if 0 < month < 12 else date(year + 1, 1, 1)
    return Quantity(first.toordinal(), (following - timedelta(days=1)).toordinal(), DATE)


@lru_cache(maxsize=NAMES_KEPT)
def read_quantity(text: str) -> Quantity | None:
    """A date, or a number with its unit, that is all of `text`; else None."""
    if (found := read_date(text)) is not None:
        return found
    match = _NUMBER.fullmatch(folded(text).strip()) if _DIGIT.search(text) else None
    if match is None:
        return None
    number = float(match["number"].replace(",", ""))
    return Quantity(number, number, f"{match['before'].strip()}#{match['after'].strip()}") if number < inf else None


def vaguer(text: str) -> Iterator[tuple[str, Quantity]]:
    """Vaguer ways to say a date or number, the vaguest first; none for other texts and for round numbers."""
    quantity = read_quantity(text)
    if quantity is None:
        return
    if quantity.unit == DATE:
        if quantity.year is not None:
            yield from _periods(quantity.year)
    else:
        yield from _ranges(text)


def _periods(year: int) -> Iterator[tuple[str, Quantity]]:
    """Century, decade and third of a decade. "The 1900s" may be a century: that decade is said by its years."""
    century, decade, last = year // 100 + 1, year // 10 * 10, year % 10
    yield f"the {century}{_ordinal(century)} century", _years(century * 100 - 100, century * 100 - 1)
    part, first, final = next(third for third in (("early", 0, 3), ("mid", 4, 6), ("late", 7, 9)) if last <= third[2])
    whole, third = _years(decade, decade + 9), _years(decade + first, decade + final)
    yield f"the {decade}s" if decade % 100 else f"the years {decade} to {decade + 9}", whole
    yield f"the {part} {decade}s" if decade % 100 else f"the years {decade + first} to {decade + final}", third


def _years(first: int, last: int) -> Quantity:
    return Quantity(date(first, 1, 1).toordinal(), date(last, 12, 31).toordinal(), DATE)


def _ordinal(number: int) -> str:
    return "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _ranges(text: str) -> Iterator[tuple[str, Quantity]]:
    """From the number cut to one digit, and then to two, up to the next such number; with the unit as written."""
    match = _NUMBER.search(folded(text))
    quantity = read_quantity(text)
    if match is None or quantity is None:
        return
    number, before, after = Decimal(match["number"].replace(",", "")), match["before"], match["after"]
    for digits in (1, 2):
        step = Decimal(1).scaleb(number.adjusted() - digits + 1)
        low = number // step * step - (step if number < 0 else 0)  # `//` cuts towards 0
        if number % step == 0:
            return  # a range that begins with the number would give it away
        shown = f"between {before}{low:,f} and {before}{low + step:,f}{after}"
        yield shown, Quantity(float(low), float(low + step), quantity.unit)
