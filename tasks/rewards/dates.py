"""Dates and periods as answers: every spelling becomes the interval of days it names.

"May 2021", "2021-05" and "from 1 to 31 May 2021" are one interval, "2021-05-03" another. "03/04/2021" is two dates: it
is right only where the question says which comes first ("DD/MM/YYYY", "day first") or the gold answer is written the
same way. Dots are day first (03.04.2021), a leading year is always year-month-day. Years of two digits are refused.
"""

import re
from calendar import monthrange
from functools import lru_cache

from tasks.rewards.normalise import normalise, plain
from tasks.rewards.numerals import in_digits
from tasks.rewards.reasons import Reason

Day = tuple[int, int, int]  # year (0: not said; negative: BC), month, day
Interval = tuple[Day, Day]  # first and last day

LONGEST_DATE = 100  # characters
_MONTHS = {name: number for number, name in enumerate(
    "january february march april may june july august september october november december".split(), 1
)}  # fmt: skip
_MONTH_NAMES = {**{name[:3]: number for name, number in _MONTHS.items()}, **_MONTHS, "sept": 9}
_M = rf"(?P<month>{'|'.join(sorted(_MONTH_NAMES, key=len, reverse=True))})\.?"
_D = r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?"
_Y = r"(?P<year>[0-9]{3,4}|[0-9]{1,2}(?=\s*(?:bce?|ad|ce)$))"
_ERA = r"(?:\s*(?P<era>bce?|ad|ce))?"
_NUMERIC = re.compile(r"(?P<first>[0-9]{1,2})(?P<mark>[/.-])(?P<second>[0-9]{1,2})(?P=mark)(?P<year>[0-9]{4})")
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"{_Y}(?P<mark>[-/.])(?P<month_number>[0-9]{{1,2}})(?:(?P=mark)(?P<day>[0-9]{{1,2}}))?",
        rf"(?:the\s+)?{_D}\s+(?:of\s+)?{_M}(?:,?\s+(?:of\s+)?{_Y})?{_ERA}",
        rf"{_M}\s+{_D}(?:,?\s+{_Y})?{_ERA}",
        rf"{_M}(?:,?\s+(?:of\s+)?{_Y}{_ERA})?",
        rf"(?:the\s+)?(?:year\s+)?(?P<year>[0-9]{{1,4}}){_ERA}",
        r"(?P<year>[0-9]{4})\s*年(?:\s*(?P<month_number>[0-9]{1,2})\s*月(?:\s*(?P<day>[0-9]{1,2})\s*[日号])?)?",
        r"(?P<month_number>[0-9]{1,2})\s*月\s*(?P<day>[0-9]{1,2})\s*[日号]",
    )
)
_QUARTER = re.compile(
    rf"(?:the\s+)?(?:q(?P<q>[1-4])|(?P<nth>first|second|third|fourth)\s+quarter)(?:\s+(?:of\s+)?|,\s*){_Y}"
)
_QUARTER_LAST = re.compile(rf"{_Y}[\s-]*q(?P<q>[1-4])")
_HALF = re.compile(rf"(?:the\s+)?(?:h(?P<h>[12])|(?P<nth>first|second)\s+half)\s+(?:of\s+)?{_Y}")
_DECADE = re.compile(r"(?:the\s+)?(?P<decade>[0-9]{3}0)\s*(?:'?s|年代)")
_CENTURY = re.compile(rf"(?:the\s+)?(?P<century>[0-9]{{1,2}})(?:st|nd|rd|th)?\s*(?:century|世纪){_ERA}")
_NTH = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_RANGE = re.compile(r"\s*(?:-{1,2}|~|\bto\b|\bthrough\b|\buntil\b|\band\b|至|到)\s*")
_RANGE_START = re.compile(r"(?:from|between|during|in|on|since)\s+")
_WEEKDAY = re.compile(r"(?:on\s+)?(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s+(?:the\s+)?")
_DAY_FIRST = re.compile(r"\bDD?[/.-]MM?\b|\bday[ -](?:first|month)\b|\bday/month\b", re.IGNORECASE)
_MONTH_FIRST = re.compile(r"\bMM?[/.-]DD?\b|\bmonth[ -](?:first|day)\b|\bmonth/day\b", re.IGNORECASE)
_OR = re.compile(r"[0-9]\D*(?:\bor\b|或)\D*[0-9]")
_DASHES = re.compile(r"[–—−‐‑]")


def compare_dates(answer: str, gold: str, question: str) -> Reason:
    """Compare two dates or periods as intervals of days.

    A gold answer that is no date ("early spring") needs its own words, as does an unreadable answer.
    """
    if normalise(answer) == normalise(gold) != "":
        return Reason.EQUAL
    wanted, given = _read(gold, question), _read(answer, question)
    if not wanted:
        return Reason.DIFFERENT
    if not given:
        return Reason.SEVERAL_ANSWERS if _OR.search(answer) else Reason.NOT_OF_KIND
    if wanted == given and (len(given) == 1 or _fields(answer) == _fields(gold)):
        return Reason.EQUAL
    return Reason.DIFFERENT if len(given) == len(wanted) == 1 else Reason.AMBIGUOUS


def _read(text: str, question: str) -> tuple[Interval, ...]:
    order = "month" if _MONTH_FIRST.search(question) else ""
    return readings(text, "day" if _DAY_FIRST.search(question) else order)


def readings(text: str, order: str = "") -> tuple[Interval, ...]:
    """All intervals that `text` may name: none if it is no date, two for 03/04/2021 without an `order` (day, month)."""
    return _readings(text, order) if len(text) <= LONGEST_DATE else ()


@lru_cache(maxsize=4096)
def _readings(text: str, order: str) -> tuple[Interval, ...]:
    text = _DASHES.sub("-", plain(text)).casefold()
    text = in_digits(text) if not text.isascii() else text
    text = text.strip(" \t\n\"'").rstrip(" .,;:!?\"'")
    text = _WEEKDAY.sub("", text, count=1) if _WEEKDAY.match(text) else text
    text = _RANGE_START.sub("", text, count=1) if _RANGE_START.match(text) else text
    numeric = _NUMERIC.fullmatch(text)
    if numeric:
        return _numeric(numeric, order)
    found = _interval(text) or _range(text)
    return (found,) if found else ()


def _numeric(match: re.Match[str], order: str) -> tuple[Interval, ...]:
    year, first, second = int(match["year"]), int(match["first"]), int(match["second"])
    day_first, month_first = _days(year, second, first), _days(year, first, second)
    if match["mark"] == "." or order == "day":
        month_first = None
    elif order == "month":
        day_first = None
    return tuple(sorted({interval for interval in (day_first, month_first) if interval}))


def _interval(text: str) -> Interval | None:
    for form in _FORMS:
        match = form.fullmatch(text)
        if match:
            return _of_form(match.groupdict())
    if match := _QUARTER.fullmatch(text) or _QUARTER_LAST.fullmatch(text):
        number = int(match["q"] or 0) or _NTH[match["nth"]]
        return _months(int(match["year"]), 3 * number - 2, 3 * number)
    if match := _HALF.fullmatch(text):
        number = int(match["h"] or 0) or _NTH[match["nth"]]
        return _months(int(match["year"]), 6 * number - 5, 6 * number)
    if match := _DECADE.fullmatch(text):
        return (int(match["decade"]), 1, 1), (int(match["decade"]) + 9, 12, 31)
    if match := _CENTURY.fullmatch(text):
        last = 100 * int(match["century"])
        years = (-last, -last + 99) if (match["era"] or "").startswith("b") else (last - 99, last)
        return (years[0], 1, 1), (years[1], 12, 31)
    return None


def _of_form(parts: dict[str, str | None]) -> Interval | None:
    year = int(parts.get("year") or 0)
    if year == 0 and parts.get("year"):
        return None
    year = -year if (parts.get("era") or "").startswith("b") else year
    month = _MONTH_NAMES.get(parts.get("month") or "") or int(parts.get("month_number") or 0)
    if not month:
        return None if parts.get("month_number") else _months(year, 1, 12)
    day = parts.get("day")
    return _days(year, month, int(day)) if day else _months(year, month, month)


def _range(text: str) -> Interval | None:
    """ "1990 to 1999", "May-July 2021", "3-5 May 2021": what the first part leaves out, the second says."""
    parts = _RANGE.split(text)
    if len(parts) != 2:
        return None
    last = _interval(parts[1])
    year = re.search(r"[0-9]{3,4}(?:\s*bce?)?$", parts[1])
    month_year = re.search(r"[a-z]+\.?(?:,?\s+[0-9]{3,4})?$", parts[1])
    tails = [found[0] for found in (year, month_year) if found]
    starts = [parts[0], *(f"{parts[0]} {tail}" for tail in tails)]
    if re.fullmatch(r"[0-9]{1,2}", parts[0]):
        starts = starts[1:]  # the 3 of "3-5 May 2021" is a day, not a year
    first = next((found for found in map(_interval, starts) if found and (found[0][0] or not year)), None)
    return (first[0], last[1]) if first and last and first[0] <= last[1] else None


def _months(year: int, first: int, last: int) -> Interval | None:
    start, end = _days(year, first, 1), _days(year, last, _length(year, last)) if 1 <= last <= 12 else None
    return (start[0], end[1]) if start and end else None


def _days(year: int, month: int, day: int) -> Interval | None:
    if not 1 <= month <= 12 or not 1 <= day <= _length(year, month):
        return None
    return (year, month, day), (year, month, day)


def _length(year: int, month: int) -> int:
    """Days in a month; a leap year where no year is said."""
    return monthrange(year if year > 0 else 2000, month)[1]


def _fields(text: str) -> str:
    return re.sub(r"(?<![0-9])0+(?=[0-9])", "", text.strip())
