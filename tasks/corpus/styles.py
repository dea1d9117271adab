"""How a column writes its numbers or dates. The whole column decides; what two styles read differently stays text.

A style reads a text exactly or not at all: integers and decimals of any length, never floats.
"""

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache

Value = int | Decimal | dt.date | str  # a str is a month, "2023-05"
LONGEST = 80  # characters of a cell that may be a value; longer ones are prose or codes
MOST_DIGITS = 37  # DuckDB computes with 38; longer digit strings are codes
BLANKS = str.maketrans(dict.fromkeys("\u00a0\u2007\u2009\u202f", " ") | {"−": "-", "’": "'"})
CURRENCIES = "AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD INR JPY KRW MXN NOK NZD PLN RUB SEK SGD TRY USD ZAR".split()
ATTACHED = "% ‰ °C °F ° k kg g mg t m km cm mm m² km² m³ ha l s h min W kW MW GW kWh MWh GWh TWh".split()
SCALES = {"thousand": 3, "million": 6, "mn": 6, "billion": 9, "bn": 9, "trillion": 12}
_MONEY = rf"(?:[A-Z]{{1,3}})?[$€£¥₹₩₽₺₴₫₱]|(?:{'|'.join(CURRENCIES)})(?![A-Za-z])"
_UNIT = "|".join(re.escape(unit) for unit in sorted(ATTACHED, key=len, reverse=True))
_WORDS = r"[^\W\d_](?:[^\d()-]|\(s\))*(?:(?:/|per\ )\s*[0-9,]+[^\d()-]*)?"  # "births/1,000 population"
_NUMBER = re.compile(
    rf"""(?P<open>\()?\s*(?P<minus>-)?\s*(?P<prefix>{_MONEY})?\s*(?P<inner>-)?
    (?P<digits>[0-9](?:[0-9.,' ]*[0-9])?)(?P<exponent>[eE][+-]?[0-9]{{1,3}}(?![0-9]))?
    (?:\s*(?P<scale>{"|".join(SCALES)})\b)?
    (?:\s*(?P<suffix>(?:{_MONEY}|{_UNIT})(?![A-Za-z0-9])))?(?:\s+(?P<words>{_WORDS}))?
    (?P<trailing>-)?\s*(?P<close>\))?""",
    re.VERBOSE,
)
_MARKS = {"lakh": ","} | {mark: mark for mark in ("", ",", ".", " ", "'")}  # what a group is separated by
_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = {name[:length]: number for number, name in enumerate(_MONTHS, 1) for length in (3, len(name))} | {"sept": 9}
_NAMED = rf"(?P<name>{'|'.join(sorted(_MONTH, key=len, reverse=True))})\.?"


@dataclass(frozen=True)
class Spelling:
    """The parts of a text that looks like one number. `open_unit`: its unit is no known one, only words behind it."""

    digits: str
    exponent: str
    scale: int
    negative: bool
    unit: str
    open_unit: bool


@lru_cache(maxsize=2**14)  # every style reads the same texts
def spelling(text: str) -> Spelling | None:
    """Take a number apart: sign (also "(5)" and "5-"), currency or unit, digits with marks, exponent, scale word."""
    match = _NUMBER.fullmatch(text.translate(BLANKS).strip()) if len(text) <= LONGEST else None
    if match is None or bool(match["open"]) != bool(match["close"]):
        return None
    signs = [name for name in ("open", "minus", "inner", "trailing") if match[name]]
    words = (match["words"] or "").strip()
    if len(signs) > 1 or words.split(maxsplit=1)[:1] == ["and"] or words.lower() in _MONTH:
        return None
    unit = " ".join(part for part in (match["prefix"], match["suffix"], words) if part)
    scale = SCALES.get(match["scale"] or "", 0)
    return Spelling(match["digits"], match["exponent"] or "", scale, bool(signs), unit, bool(words))


@dataclass(frozen=True)
class NumberStyle:
    """The marks between groups of digits and before the decimals, and the one unit of all values."""

    group: str  # "" none; "lakh" is India's 12,34,567
    decimal: str
    unit: str

    def read(self, text: str) -> int | Decimal | None:
        """The exact value, an integer where no decimals are written, or None for a text in another style."""
        parts = spelling(text)
        if parts is None or unit_key(parts.unit) != unit_key(self.unit):
            return None
        match = _digits(self.group, self.decimal).fullmatch(parts.digits)
        if match is None or len(re.sub(r"\D", "", parts.digits)) > MOST_DIGITS:
            return None
        plain = re.sub(r"\D", "", match["whole"]) + (f".{match['decimals']}" if match["decimals"] else "")
        value = Decimal(f"{plain}E{int(parts.exponent[1:] or 0) + parts.scale}")
        if abs(value.adjusted()) > MOST_DIGITS:
            return None
        value = value.copy_negate() if parts.negative else value
        return int(value) if _exponent(value) >= 0 else value


def unit_key(unit: str) -> str:
    """The form in which units are equal: "1 year" and "2 years" have one."""
    singular = unit.removesuffix("s") if len(unit) > 2 else unit
    return singular.lower() if len(unit) > 3 else singular  # MW is not mW


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)  # infinities are never spelled in digits
    return exponent


@cache
def _digits(group: str, decimal: str) -> re.Pattern[str]:
    """Digits without leading zeros: those are codes."""
    grouped = {
        "": "[0-9]+",
        "lakh": r"[1-9][0-9]?(?:,[0-9]{2})*,[0-9]{3}",
    }.get(group, rf"[1-9][0-9]{{0,2}}(?:{re.escape(group)}[0-9]{{3}})+")
    whole = rf"(?:0|[1-9][0-9]*|{grouped if group else '0'})"
    return re.compile(rf"(?P<whole>{whole})(?:{re.escape(decimal)}(?P<decimals>[0-9]+))?")


@dataclass(frozen=True)
class DateStyle:
    """One way to write days or months."""

    pattern: str

    def read(self, text: str) -> dt.date | str | None:
        """The day, a month as "2023-05", or None for a text in another style or a day that does not exist."""
        match = re.fullmatch(self.pattern, text.strip(), re.IGNORECASE | re.ASCII) if len(text) <= LONGEST else None
        if match is None:
            return None
        found = match.groupdict()
        month = _MONTH[found["name"].lower()] if found.get("name") else int(found["month"])
        try:
            day = dt.date(int(found["year"]), month, int(found.get("day") or 1))
        except ValueError:
            return None
        return day if found.get("day") else f"{day:%Y-%m}".zfill(7)


_YEAR, _MON, _DAY = "(?P<year>[0-9]{4})", "(?P<month>[0-9]{1,2})", "(?P<day>[0-9]{1,2})"
DATES = (
    DateStyle(rf"{_YEAR}-{_MON}-{_DAY}"),
    DateStyle(rf"{_YEAR}/{_MON}/{_DAY}"),
    DateStyle(rf"{_DAY}\.{_MON}\.{_YEAR}"),  # nobody writes months first with points
    DateStyle(rf"{_DAY}[/-]{_MON}[/-]{_YEAR}"),
    DateStyle(rf"{_MON}[/-]{_DAY}[/-]{_YEAR}"),
    DateStyle(rf"{_DAY} {_NAMED},? {_YEAR}"),
    DateStyle(rf"{_NAMED} {_DAY},? {_YEAR}"),
    DateStyle(rf"{_NAMED},? {_YEAR}"),
    DateStyle(rf"{_YEAR}-(?P<month>[0-9]{{2}})"),
)

Style = NumberStyle | DateStyle


@dataclass(frozen=True)
class Finding:
    """The style of a column, or why it has none ("" when its texts are simply no numbers or dates)."""

    style: Style | None
    remark: str = ""


def style_of(texts: Sequence[str], grouped: bool, share: float = 1.0) -> Finding:
    """Find the one style in which at least `share` of the texts are read. Without texts there is none.

    Where several read equally many of them but differently, there is none either, except that `grouped` says
    that the source writes thousands as 1,234 and decimals as 1.5.
    """
    found = _style(texts, _number_styles(texts), share, lambda style: grouped and _written_in_english(style, texts))
    if len(texts) == 1 and isinstance(found.style, NumberStyle) and found.style.decimal == ",":
        return Finding(None)  # one cell is no evidence for decimal commas
    return found if found.style or found.remark else _style(texts, DATES, share, lambda _: False)


def _style(texts: Sequence[str], styles: Sequence[Style], share: float, preferred: Callable[[Style], bool]) -> Finding:
    readings: dict[tuple[Value | None, ...], Style] = {}
    for style in styles:
        reading = _reading(style, texts, share)
        if reading is not None:
            readings.setdefault(reading, style)
    most = max((_number_read(reading) for reading in readings), default=0)
    if not most:
        return Finding(None)
    best = {reading: style for reading, style in readings.items() if _number_read(reading) == most}
    chosen = list(best.values()) if len(best) == 1 else [style for style in best.values() if preferred(style)]
    if len(chosen) == 1:
        return Finding(chosen[0])
    readable = next(text for text, *values in zip(texts, *best, strict=True) if len(set(values)) > 1)
    return Finding(None, f"{readable!r} can be read in {len(best)} ways and no other cell decides; kept as text")


def _reading(style: Style, texts: Sequence[str], share: float) -> tuple[Value | None, ...] | None:
    """What a style reads; None as soon as less than `share` of the texts can be."""
    values: list[Value | None] = []
    missed = 0
    for text in texts:
        values.append(style.read(text))
        missed += values[-1] is None
        if len(texts) - missed < share * len(texts):
            return None
    return tuple(values)


def _number_read(reading: Sequence[Value | None]) -> int:
    return sum(value is not None for value in reading)


def _number_styles(texts: Sequence[str]) -> list[NumberStyle]:
    """All styles with the unit that most texts have. One cell alone is no evidence for an unknown unit."""
    parts = [part for part in map(spelling, texts) if part is not None]
    if not parts or not _exponents_are_meant(parts):
        return []
    units = Counter(unit_key(part.unit) for part in parts)
    unit = max((part.unit for part in parts if unit_key(part.unit) == units.most_common(1)[0][0]), key=len)
    if len(texts) == 1 and parts[0].open_unit:
        return []
    present = set("".join(part.digits for part in parts))
    return [NumberStyle(group, mark, unit) for group, mark in _marks(present)]


def _marks(present: Set[str]) -> Iterator[tuple[str, str]]:
    """The marks of all styles that can differ where only these characters occur."""
    for group in ("", ",", ".", " ", "'", "lakh"):
        usual, other = (",", ".") if group == "." else (".", ",")
        if group == "" or _MARKS[group] in present:
            yield group, usual
            if other in present and other != _MARKS[group]:
                yield group, other


def _exponents_are_meant(parts: Sequence[Spelling]) -> bool:
    """1e5 may be a code; 1.5e5 and 1e+05 are numbers."""
    powers = [part for part in parts if part.exponent]
    return all("." in part.digits or "," in part.digits or part.exponent[1] in "+-" for part in powers)


def _written_in_english(style: Style, texts: Sequence[str]) -> bool:
    """Commas between thousands, a point before decimals; not where both marks stand in the same place."""
    if not isinstance(style, NumberStyle):
        return False
    marks = {mark for text in texts for mark in re.findall(r"^\D*[0-9]{1,3}([.,])[0-9]{3}\D*$", text)}
    return len(marks) < 2 and (style.group, style.decimal) in ((",", "."), ("", "."))
