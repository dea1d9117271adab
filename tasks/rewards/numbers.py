"""Numbers as answers: a small grammar read into exact fractions. Nothing is evaluated."""

import re
from dataclasses import dataclass
from fractions import Fraction

from tasks.rewards.normalise import plain

RELATIVE_TOLERANCE = Fraction(15, 10_000)  # SPELL: ±0.15 %
LONGEST_NUMBER = 200  # characters
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen"}
_FRACTION = re.compile(r"\\[dt]?frac\s*\{\s*([0-9]+)\s*\}\s*\{\s*([0-9]+)\s*\}")
_NUMBER = re.compile(
    r"""(?P<sign>[+-]?)\s*(?P<currency>[$€£¥]?)\s*
    (?: (?:(?P<whole>[0-9]+)\s+)? (?P<numerator>[0-9]+)\s*/\s*(?P<denominator>[0-9]+)
      | (?P<integer>[0-9]{1,3}(?:,[0-9]{3})+ | [0-9]{1,3}(?:\s[0-9]{3})+ | [0-9]+)?
        (?:\.(?P<decimals>[0-9]+))?
        (?: e(?P<exponent>[+-]?[0-9]{1,3})
          | \s*(?:×|x|\\times|\\cdot)\s*10\s*\^\s*\{?(?P<power>[+-]?[0-9]{1,3})\}? )? )
    (?:\s*(?P<scale>thousand|million|billion|trillion)\b)?
    (?P<percent>\s*(?:%|percent\b|per\ cent\b))?
    \s*(?P<unit>[^\W\d_€£¥$][^\d]*|[€£¥$°])?(?:\^\d)?""",
    re.VERBOSE | re.IGNORECASE,
)
_PERCENT_ASKED = re.compile(r"%|\bpercent(?:age)?\b|\bper cent\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+|[€£¥$°]")


@dataclass(frozen=True)
class Number:
    """A number as written: "28%" has value 28 and `percent`. `rounded`: has decimals or is not an integer."""

    value: Fraction
    percent: bool
    rounded: bool
    units: frozenset[str]


def parse_number(text: str) -> Number | None:
    r"""Read an integer, decimal, fraction (1/2, 1 1/2, \frac{1}{2}) or power-of-ten form, with separators of
    thousands, a scale word, a percent sign and a unit. None for anything else: other powers, ranges, two
    numbers.
    """
    if len(text) > LONGEST_NUMBER:
        return None
    spelled = _FRACTION.sub(r" \1/\2", plain(text)).strip(" \t\n\"'").rstrip(" .,;:!?\"'")
    if spelled.startswith("(") and spelled.endswith(")"):
        spelled = spelled[1:-1]
    match = _NUMBER.fullmatch(re.sub(r"^([+-])\s+", r"\1", spelled).strip())
    value = _value(match) if match else None
    if match is None or value is None:
        return None
    value *= _SCALES.get((match["scale"] or "").lower(), 1)
    return Number(
        value=-value if match["sign"] == "-" else value,
        percent=match["percent"] is not None,
        rounded=match["decimals"] is not None or value.denominator != 1,
        units=_words(f"{match['currency']} {match['unit'] or ''}"),
    )


def same_number(answer: str, gold: str, question: str) -> bool:
    """Whether two numbers are equal at the scale the question asks for.

    A bare number is a percentage exactly when the question asks in percent, otherwise the plain value; one
    with a percent sign is converted. So "0.28" equals "28%", yet never 28 where the question asks in percent.
    Integers are compared exactly, rounded gold answers within `RELATIVE_TOLERANCE` of them (0 admits only 0).
    A unit in the answer must occur in the gold answer or the question. A gold answer outside the grammar
    needs its own spelling.
    """
    wanted = parse_number(gold)
    if wanted is None:
        return _spelling(answer) == _spelling(gold) != ""
    given = parse_number(answer)
    if given is None or not given.units <= wanted.units | _words(question):
        return False
    in_percent = _PERCENT_ASKED.search(question) is not None
    value, target = _scaled(given, in_percent), _scaled(wanted, in_percent)
    allowed = abs(target) * RELATIVE_TOLERANCE if wanted.rounded else Fraction(0)
    return abs(value - target) <= allowed


def _value(match: re.Match[str]) -> Fraction | None:
    if match["numerator"]:
        denominator = int(match["denominator"])
        part = Fraction(int(match["numerator"]), denominator) if denominator else None
        return None if part is None else part + int(match["whole"] or 0)
    if not match["integer"] and not match["decimals"]:
        return None
    digits = re.sub(r"\D", "", match["integer"] or "0")
    decimals = match["decimals"] or ""
    exponent = int(match["exponent"] or match["power"] or 0) - len(decimals)
    return int(digits + decimals) * Fraction(10) ** exponent


def _scaled(number: Number, in_percent: bool) -> Fraction:
    return number.value / 100 if number.percent or in_percent else number.value


def _words(text: str) -> frozenset[str]:
    """Lower-case words without a plural s; currency signs become words."""
    words = (_CURRENCIES.get(word, word) for word in _WORD.findall(plain(text).lower()))
    return frozenset(word[:-1] if len(word) > 2 and word.endswith("s") else word for word in words)


def _spelling(text: str) -> str:
    return "".join(plain(text).split()).strip(".,;:").casefold()
