"""Numbers and quantities as answers: real-life spellings read into exact fractions. Nothing is evaluated.

Separators are read by evidence. With one kind of separator only: "1,234" is 1234 (groups of three, or Indian groups),
"12,5" and "0,123" are decimals because no group could look so; "1.234" is a decimal, "1.234.567" an integer. With two
kinds the last one is the decimal mark: "1.234,5" and "1,234.5". So the two spellings that only a convention can decide
are read the English way.
"""

import re
import unicodedata
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from tasks.rewards.normalise import plain
from tasks.rewards.numerals import in_digits
from tasks.rewards.reasons import Reason
from tasks.rewards.units import Unit, parse_unit, singular

RELATIVE_TOLERANCE = Fraction(15, 10_000)  # SPELL: ±0.15 %
LONGEST_NUMBER = 200  # characters
_SIMPLE = re.compile(r"([+-]?)([0-9]{1,100})(?:\.([0-9]{1,100}))?")
_SCALES = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "lakh": 10**5,
    "crore": 10**7, "mn": 10**6, "mln": 10**6, "mio": 10**6, "bn": 10**9, "bln": 10**9, "tn": 10**12, "trn": 10**12,
    "百万": 10**6, "万": 10**4, "亿": 10**8,
}  # fmt: skip
_LETTERS_OF_SCALE = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_FRACTION = re.compile(
    r"\\[dtc]?frac\s*(?:\{\s*([0-9]+)\s*\}\s*\{\s*([0-9]+)\s*\}|([0-9])\s*([0-9]))"  # \frac{1}{2}, \frac12
)
_DIGITS = r"(?:[0-9]+(?:[.,' _][0-9]+)*|\.[0-9]+)"
_CURRENCY = r"(?:US|A|C|HK|NZ|S)?\$|[€£¥₹₩₽]|(?:USD|EUR|GBP|JPY|CNY|RMB|INR|CHF)(?=[\s0-9+-])"
_NUMBER = re.compile(
    rf"""(?P<sign>[+-]?)\s*(?P<currency>{_CURRENCY})?\s*(?P<late_sign>[+-]?)
    (?: (?P<ten>10)\s*(?:\^|\*\*)\s*[{{(]?(?P<ten_power>[+-]?[0-9]{{1,3}})(?![0-9])[)}}]?
      | (?:(?P<whole>[0-9]+)(?:\s+and)?\s+)? (?P<numerator>[0-9]+)\s*/\s*(?P<denominator>[0-9]+)
      | (?P<digits>{_DIGITS}) (?:
            [eE](?P<exponent>[+-]?[0-9]{{1,3}})(?![0-9])
          | \s*(?:×|x|\*|\\times|\\cdot)\s*10\s*(?:\^|\*\*)\s*[{{(]?(?P<power>[+-]?[0-9]{{1,3}})(?![0-9])[)}}]? )? )
    (?P<rest>(?P<gap>[\s-]*)(?P<word>[^\W\d_]*).*)""",
    re.VERBOSE | re.DOTALL,
)
_PERCENT = re.compile(r"\s*(?:(%|percent\b(?!\w)|per\s+cent\b|pct\b)|(‰|per\s?mille?\b))\.?\s*", re.IGNORECASE)
_UNIT = re.compile(r"(?:[^\W\d_]|[€£¥$₹₩₽°¢/])(?:[^\d^]|(?<=[A-Za-zμ])\^?-?[0-9](?![0-9]))*")
_NEGATIVE = re.compile(r"(?:minus|negative)\s+(?=[0-9.$€£¥])", re.IGNORECASE)
_ABOUT = re.compile(r"(?:≈|~|∼|\\approx|\\sim|approx(?:imately|\.)?|about|around|roughly|circa|ca\.|约|大约)\s*", re.I)
_NAMED = re.compile(r"[A-Za-z]\w{0,20}\s*=\s*(?=[-+0-9.$€£¥(\\])")
_HEDGE = re.compile(
    r"\b(?:or|to|and|between|either|neither|from|versus|vs|than|least|most|over|under|up)\b|[?;<>≥≤]", re.I
)
_COMPOUND = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([^\W\d_]+)\.?(?:\s*,\s*|\s+and\s+|\s+)?")
_PLUS_MINUS = re.compile(r"\s*(?:±|\+/-|\\pm)\s*")
_ACCOUNTED = re.compile(
    rf"({_CURRENCY})?\s*\(\s*((?:{_CURRENCY})?\s*{_DIGITS}\s*(?:%|[a-zA-Z]*))\s*\)\s*(.*)", re.DOTALL
)
_NUMBER_LIKE = re.compile(r"(?<![\w.])-?[0-9]+(?:[.,][0-9]+)*")
_PERCENT_ASKED = re.compile(r"%|\bpercent(?:age)?\b|\bper cent\b|百分", re.IGNORECASE)
_UNIT_ASKED = re.compile(
    r"\b(?:how many|in)\s+((?:(?:square|cubic)\s+)?[^\W\d_]+)|[(（]\s*(?:in\s+)?([^\W\d_/^]+[^()（）]{0,12})[)）]", re.I
)
_POUND = frozenset({"pound"})  # of money or of mass
_WORD = re.compile(r"[^\W\d_]+|[€£¥$₹₩₽°]")


@dataclass(frozen=True)
class Number:
    """A number as written: "28%" has value 28 and `percent`. `rounded`: has decimals or is not an integer.

    `within` is a gold answer's own tolerance, in its unit: "9.81 ± 0.02", "9.81 ± 1%".
    """

    value: Fraction
    percent: bool = False
    rounded: bool = False
    unit: Unit | None = None
    within: Fraction | None = None


def parse_number(text: str) -> Number | None:
    r"""Read one number with its scale, percent sign and unit.

    Integers, decimals, fractions (1/2, 1 1/2, \frac{1}{2}), powers of ten, number words in English and Chinese,
    "5 ft 3 in", accounting negatives ("($1,234)": in parentheses, with a currency sign or separators), "≈ 5" and
    "x = 5". None for anything else: other powers, ranges, two numbers, bounds ("more than 5").
    """
    return _parsed(text) if len(text) <= LONGEST_NUMBER else None


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Number | None:
    if simple := _SIMPLE.fullmatch(text):
        return Number(_signed(simple[1], Fraction(int(simple[2])), simple[3]), rounded=simple[3] is not None)
    text = _spelled(text)
    return _accounted(text) or _single(text) or _compound(text)


@lru_cache(maxsize=4096)
def parse_gold(text: str) -> Number | None:
    """A gold answer's number; "±" gives its tolerance, absolute in its unit or relative in percent."""
    parts = _PLUS_MINUS.split(text)
    number = parse_number(parts[0].strip()) if len(parts) <= 2 else None
    if number is None or len(parts) == 1:
        return number
    margin = parse_number(parts[1].strip())
    if margin is None or margin.value < 0:
        return None
    if margin.percent and not number.percent:
        return replace(number, within=abs(number.value) * margin.value / 100)
    return replace(number, unit=number.unit or margin.unit, within=margin.value)


def same_number(answer: str, gold: str, question: str) -> bool:
    """Whether two numbers are equal at the scale the question asks for; see `compare_numbers`."""
    return compare_numbers(answer, gold, question) is Reason.EQUAL


def compare_numbers(
    answer: str, gold: str, question: str, *, in_percent: bool = False, unit_needed: bool = False
) -> Reason:
    """Compare two numbers at the scale the question asks for.

    A bare number is a percentage exactly when the question asks in percent (or `in_percent`), otherwise the plain
    value; one with a percent sign is converted. So "0.28" equals "28%", yet never 28 where the question asks in
    percent. Integers are compared exactly, rounded gold answers within `RELATIVE_TOLERANCE` of them (0 admits only
    0), a gold answer with "±" within that. Units of one dimension are converted ("5 km" is "5000 m"), a word that is
    no unit of measurement must occur in the gold answer or the question. A bare answer is in the gold answer's unit;
    with `unit_needed` only if the question names it. A gold answer outside the grammar needs its own spelling.
    """
    wanted = parse_gold(gold)
    if answer.strip() == gold.strip() != "":
        return Reason.EQUAL
    if wanted is None:
        return Reason.EQUAL if _spelling(answer) == _spelling(gold) != "" else Reason.NOT_OF_KIND
    given = parse_number(answer)
    if given is None:
        several = _HEDGE.search(answer) or len(_NUMBER_LIKE.findall(answer)) > 1
        return Reason.SEVERAL_ANSWERS if several and _NUMBER_LIKE.search(answer) else Reason.NOT_OF_KIND
    if unit_needed and given.unit is None and not _says_unit(question, wanted):
        return Reason.OTHER_UNIT
    converted = _in_unit_of(given, wanted, question)
    if converted is None:
        return Reason.OTHER_UNIT
    in_percent |= _PERCENT_ASKED.search(question) is not None
    value, target = _scaled(converted, in_percent), _scaled(wanted, in_percent)
    return Reason.EQUAL if abs(value - target) <= _allowed(converted, wanted, in_percent) else Reason.DIFFERENT


def _spelled(text: str) -> str:
    """One spelling of digits, signs and fractions; number words in digits."""
    text = _ascii_digits(plain(text)).replace("\\,", "").replace("\\ ", " ")
    text = _FRACTION.sub(lambda match: f" {match[1] or match[3]}/{match[2] or match[4]}", text)
    text = in_digits(text).strip(" \t\n\"'").rstrip(" .,;:!?\"'")
    text = _ABOUT.sub("", text, count=1) if _ABOUT.match(text) else text
    text = _NAMED.sub("", text, count=1) if _NAMED.match(text) else text
    return re.sub(r"^([+-])\s+", r"\1", _NEGATIVE.sub("-", text, count=1)).strip()


def _ascii_digits(text: str) -> str:
    """The decimal digits of any script, and the Arabic separators."""
    if text.isascii():
        return text
    text = text.replace("٫", ".").replace("٬", ",")
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)


def _accounted(text: str) -> Number | None:
    """ "($1,234) million" is negative; "(5)" is a 5 in parentheses, because nothing says it is an amount."""
    match = _ACCOUNTED.fullmatch(text)
    if match is None:
        return None
    currency, inside, suffix = (part or "" for part in match.groups())
    number = _single(f"{currency}{inside} {suffix}".strip())
    amount = currency or re.search(rf"{_CURRENCY}|[0-9][,.'][0-9]{{3}}(?![0-9])", inside)
    return replace(number, value=-number.value) if number and amount else number


def _single(text: str) -> Number | None:
    match = _NUMBER.fullmatch(text)
    if match is None or (match["sign"] and match["late_sign"]):
        return None
    value = _value(match)
    if value is None:
        return None
    suffix = _suffix(match)
    if suffix is None:
        return None
    scale, percent, unit = suffix
    value *= scale
    rounded = _has_decimals(match["digits"] or "") or value.denominator != 1
    return Number(_signed(match["sign"] or match["late_sign"], value), percent, rounded, unit)


def _compound(text: str) -> Number | None:
    """ "5 ft 3 in", "1 hour and 30 minutes": units of one dimension, each smaller than the one before."""
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    if _COMPOUND.sub("", text):
        return None
    parts = [(Fraction(value), parse_unit(name)) for value, name in _COMPOUND.findall(text)]
    units = [unit for _, unit in parts if unit is not None and unit.known]
    if len(units) != len(parts) or len(parts) < 2 or len({unit.dimension for unit in units}) > 1:
        return None
    if any(left.factor <= right.factor for left, right in pairwise(units)):
        return None
    total = sum((value * unit.factor for (value, _), unit in zip(parts, units, strict=True)), Fraction(0))
    value = total / units[-1].factor
    return Number(_signed(sign, value), rounded=value.denominator != 1, unit=units[-1])


def _value(match: re.Match[str]) -> Fraction | None:
    if match["numerator"]:
        denominator = int(match["denominator"])
        return int(match["whole"] or 0) + Fraction(int(match["numerator"]), denominator) if denominator else None
    if match["ten"]:
        return Fraction(10) ** int(match["ten_power"])
    value = _digits_value(match["digits"])
    return None if value is None else value * Fraction(10) ** int(match["exponent"] or match["power"] or 0)


def _digits_value(text: str) -> Fraction | None:
    """Digits with separators; the module says how they are read. None where the groups make no number."""
    split = _split_decimals(text)
    if split is None:
        return None
    digits, decimals = split
    return Fraction(int(digits + decimals), 10 ** len(decimals))


def _has_decimals(text: str) -> bool:
    split = _split_decimals(text) if text else None
    return split is not None and split[1] != ""


def _split_decimals(text: str) -> tuple[str, str] | None:
    groups, marks = re.split(r"[.,' _]", text), re.findall(r"[.,' _]", text)
    if not marks:
        return text, ""
    kinds = set(marks)
    if len(kinds) == 1:
        if _grouped(groups, marks[0]) and (len(marks) > 1 or marks[0] != "."):
            return "".join(groups), ""
        decimal = len(marks) == 1 and marks[0] in ".,"
        return (groups[0] or "0", groups[1]) if decimal else None
    decimal = len(kinds) == 2 and marks[-1] in ".," and marks.count(marks[-1]) == 1
    return ("".join(groups[:-1]), groups[-1]) if decimal and _grouped(groups[:-1], marks[0]) else None


def _grouped(groups: list[str], mark: str) -> bool:
    """Whether the groups are thousands, or Indian ones: 12,34,567."""
    first, *others = groups
    if not 1 <= len(first) <= 3 or (first[0] == "0") or len(others[-1]) != 3:
        return False
    sizes = {len(group) for group in others[:-1]}
    return sizes <= {3} or (mark == "," and sizes == {2} and len(first) <= 2)


def _suffix(match: re.Match[str]) -> tuple[Fraction, bool, Unit | None] | None:
    """Scale, percent and unit behind the digits; None when what stands there is none of them."""
    rest = match["rest"]
    factor, length = _scale(match)
    scale = Fraction(factor)
    rest = rest[length:]
    percent = _PERCENT.match(rest)
    if percent:
        scale /= 10 if percent[2] else 1
        rest = rest[percent.end() :]
    rest = rest.strip(" -")
    written = f"{match['currency'] or ''} {rest}".strip()
    if rest and (not _UNIT.fullmatch(rest) or _HEDGE.search(rest)):
        return None
    unit = parse_unit(written) if written else None
    return scale, percent is not None, unit


def _scale(match: re.Match[str]) -> tuple[int, int]:
    """The scale word behind the digits and its length. k, M, bn: "5k" and "$5m", but "5 m" are metres."""
    word, gap = match["word"], match["gap"]
    end = len(gap) + len(word)
    for sign in ("百万", "万", "亿"):
        if word.startswith(sign):
            return _SCALES[sign], len(gap) + len(sign)
    scale = _SCALES.get(word.lower()) or _SCALES.get(word.lower().removesuffix("s"))
    if scale is None and match["currency"] and word.lower() in _LETTERS_OF_SCALE:
        scale = _LETTERS_OF_SCALE[word.lower()]
    if scale is None and not gap and word in ("k", "K", "M", "B"):
        scale = _LETTERS_OF_SCALE[word.lower()]
    return (scale, end) if scale else (1, 0)


def _in_unit_of(given: Number, wanted: Number, question: str) -> Number | None:
    """The answer in the gold answer's unit; None when the two cannot be compared."""
    if given.unit is None:
        return given
    target = wanted.unit or _asked_unit(question)
    if target is not None and target.dimension == given.unit.dimension:
        return replace(given, value=given.unit.convert(given.value, target))
    if given.unit.known and target is not None and target.known:
        return given if given.unit.names == target.names == _POUND else None
    named = (wanted.unit.names if wanted.unit else frozenset()) | _words(question)
    return given if given.unit.names <= named or _named_in(question, given.unit) else None


def _says_unit(question: str, wanted: Number) -> bool:
    named = wanted.unit is None or wanted.unit.names <= _words(question)
    return named or _asked_unit(question) is not None


def _named_in(question: str, unit: Unit) -> bool:
    """Chinese has no spaces: its measure words count when they stand in the question."""
    return all(not name.isascii() and (name in question or name in "个個") for name in unit.names)


@lru_cache(maxsize=4096)
def _asked_unit(question: str) -> Unit | None:
    """The unit that a bare number is in: "how many kilometres", "(in km)", "in miles"; None unless it is one."""
    found = [parse_unit(plain(first or second)) for first, second in _UNIT_ASKED.findall(question)]
    known = {unit.dimension: unit for unit in found if unit is not None and unit.known}
    return next(iter(known.values())) if len(known) == 1 else None


def _allowed(given: Number, wanted: Number, in_percent: bool) -> Fraction:
    scale = 100 if wanted.percent or in_percent else 1
    if wanted.within is not None:
        return wanted.within / scale
    same = given.unit is None or wanted.unit is None or given.unit.factor == wanted.unit.factor
    rounded = wanted.rounded or (not same and given.rounded)
    return abs(wanted.value) / scale * RELATIVE_TOLERANCE if rounded else Fraction(0)


def _scaled(number: Number, in_percent: bool) -> Fraction:
    return number.value / 100 if number.percent or in_percent else number.value


def _signed(sign: str, value: Fraction, decimals: str | None = None) -> Fraction:
    if decimals:
        value += Fraction(int(decimals), 10 ** len(decimals))
    return -value if sign == "-" else value


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    """Lower-case words without a plural s; currency signs become words."""
    return frozenset(singular(word) for word in _WORD.findall(plain(text)))


def _spelling(text: str) -> str:
    """Without blanks, but for those between digits: "1 5" is not 15."""
    return re.sub(r"(?<![0-9])\s+|\s+(?![0-9])", "", plain(text)).strip(".,;:").casefold()
