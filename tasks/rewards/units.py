"""Units of measurement: names and symbols, exact factors, products and quotients such as km/h.

A table of our own instead of pint: it must be read in microseconds, and "5 apples" is a quantity as well. A word that
is not in the table is a unit of its own kind.
"""

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

Dimension = tuple[tuple[str, int], ...]  # sorted (base unit, power)


@dataclass(frozen=True)
class Unit:
    """`value` of this unit is `(value + offset) · factor` of the base units. `names`: the words it was written in."""

    dimension: Dimension
    factor: Fraction
    offset: Fraction
    names: frozenset[str]
    known: bool

    def convert(self, value: Fraction, target: "Unit") -> Fraction:
        """The same amount in `target`, whose dimension must be equal."""
        return (value + self.offset) * self.factor / target.factor - target.offset


@dataclass(frozen=True)
class _Entry:
    base: tuple[tuple[str, int], ...]
    factor: Fraction
    offset: Fraction = Fraction(0)


_LENGTH, _MASS, _TIME = ("length", 1), ("mass", 1), ("time", 1)
_ENERGY = (("length", 2), ("mass", 1), ("time", -2))
_PREFIXES = {
    "k": ("kilo", Fraction(10**3)), "M": ("mega", Fraction(10**6)), "G": ("giga", Fraction(10**9)),
    "T": ("tera", Fraction(10**12)), "h": ("hecto", Fraction(100)), "c": ("centi", Fraction(1, 100)),
    "m": ("milli", Fraction(1, 10**3)), "μ": ("micro", Fraction(1, 10**6)), "n": ("nano", Fraction(1, 10**9)),
}  # fmt: skip
_PREFIXED = {
    "m metre meter": ((_LENGTH,), "1"),
    "g gram gramme": ((_MASS,), "0.001"),
    "L litre liter l": ((("length", 3),), "0.001"),
    "W watt": ((("length", 2), ("mass", 1), ("time", -3)), "1"),
    "Wh watthour": (_ENERGY, "3600"),
    "J joule": (_ENERGY, "1"),
    "cal calorie": (_ENERGY, "4.184"),
    "N newton": ((("length", 1), ("mass", 1), ("time", -2)), "1"),
    "Pa pascal": ((("length", -1), ("mass", 1), ("time", -2)), "1"),
    "Hz hertz": ((("time", -1),), "1"),
    "V volt": ((("voltage", 1),), "1"),
    "A ampere amp": ((("current", 1),), "1"),
    "B byte": ((("data", 1),), "8"),
    "bit": ((("data", 1),), "1"),
}
_SINGLE = {
    "inch in inches": ((_LENGTH,), "0.0254"), "foot ft feet": ((_LENGTH,), "0.3048"),
    "yard yd": ((_LENGTH,), "0.9144"), "mile mi": ((_LENGTH,), "1609.344"), "nauticalmile nmi": ((_LENGTH,), "1852"),
    "米 公尺": ((_LENGTH,), "1"), "公里 千米": ((_LENGTH,), "1000"), "厘米 公分": ((_LENGTH,), "0.01"),
    "毫米": ((_LENGTH,), "0.001"),
    "tonne t metricton 吨": ((_MASS,), "1000"), "pound lb lbs": ((_MASS,), "0.45359237"),
    "ounce oz": ((_MASS,), "0.028349523125"), "公斤 千克": ((_MASS,), "1"), "克": ((_MASS,), "0.001"),
    "second s sec 秒": ((_TIME,), "1"), "millisecond ms": ((_TIME,), "0.001"),
    "minute min 分钟": ((_TIME,), "60"), "hour h hr 小时": ((_TIME,), "3600"), "day d 天": ((_TIME,), "86400"),
    "week wk 周": ((_TIME,), "604800"), "month": ((("year", 1),), "1/12"), "year yr 年": ((("year", 1),), "1"),
    "decade": ((("year", 1),), "10"), "century centuries": ((("year", 1),), "100"),
    "hectare ha 公顷": ((("length", 2),), "10000"), "acre": ((("length", 2),), "4046.8564224"),
    "gallon gal": ((("length", 3),), "0.003785411784"), "升": ((("length", 3),), "0.001"),
    "mph": ((("length", 1), ("time", -1)), "0.44704"), "kph kmh kmph": ((("length", 1), ("time", -1)), "5/18"),
    "knot kn": ((("length", 1), ("time", -1)), "463/900"),
    "bar": ((("length", -1), ("mass", 1), ("time", -2)), "100000"),
    "kelvin K": ((("temperature", 1),), "1"),
    "USD dollar $ 美元": ((("usd", 1),), "1"), "cent ¢": ((("usd", 1),), "0.01"), "EUR euro €": ((("eur", 1),), "1"),
    "GBP £": ((("gbp", 1),), "1"), "JPY yen ¥ 日元": ((("jpy", 1),), "1"),
    "CNY RMB yuan renminbi 元 人民币": ((("cny", 1),), "1"), "INR rupee ₹": ((("inr", 1),), "1"),
    "KRW ₩": ((("krw", 1),), "1"), "RUB ruble rouble ₽": ((("rub", 1),), "1"),
}  # fmt: skip
CURRENCY_WORDS = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee", "₩": "won", "₽": "ruble"}
_IRREGULAR = {"people": "person", "children": "child", "men": "man", "women": "woman"}
_PHRASES = {
    r"(?:°|º|\bdeg(?:ree)?s?\b)\s*(?:celsius|centigrade|c)\b": "celsius",
    r"(?:°|º|\bdeg(?:ree)?s?\b)\s*(?:fahrenheit|f)\b": "fahrenheit",
    r"\b(?:us|u\.s\.)\s*(?:dollars?|\$)|\bus\$": "usd",
    r"\bpounds?\s+sterling\b": "gbp",
    r"\bnautical\s+miles?\b": "nauticalmile",
    r"\bmetric\s+ton(?:ne)?s?\b": "metricton",
    r"\bper\b": "/",
}
_PHRASE = re.compile("|".join(f"({pattern})" for pattern in _PHRASES), re.IGNORECASE)
_TOKEN = re.compile(
    r"(?P<slash>/)|(?P<square>\b(?:square|sq)\b\.?|平方)|(?P<cubic>\b(?:cubic|cu)\b\.?|立方)"
    r"|(?P<name>[^\W\d_]+|[$€£¥₹₩₽¢°])(?:\^?(?P<power>-?[0-9]))?"
)


def _table() -> dict[str, _Entry]:
    entries = {
        "celsius": _Entry((("temperature", 1),), Fraction(1), Fraction("273.15")),
        "fahrenheit": _Entry((("temperature", 1),), Fraction(5, 9), Fraction("459.67")),
    }
    for names, (base, factor) in _SINGLE.items():
        entries |= {name: _Entry(base, Fraction(factor)) for name in names.split()}
    for names, (base, factor) in _PREFIXED.items():
        symbol, *words = names.split()
        entries |= {name: _Entry(base, Fraction(factor)) for name in (symbol, *words)}
        for prefix, (spelled, scale) in _PREFIXES.items():
            entry = _Entry(base, Fraction(factor) * scale)
            entries |= {f"{prefix if len(name) < 4 else spelled}{name}": entry for name in (symbol, *words)}
    return entries


_UNITS = _table()


@lru_cache(maxsize=4096)
def parse_unit(text: str) -> Unit | None:
    """Read "km", "square miles", "m/s^2", "USD per tonne", "apples". None without any word."""
    dimension: Counter[str] = Counter()
    factor, offset, sign, power, known = Fraction(1), Fraction(0), 1, 1, True
    names: set[str] = set()
    for match in _TOKEN.finditer(_PHRASE.sub(_replace_phrase, text)):
        if match["slash"]:
            sign = -1
        elif match["square"] or match["cubic"]:
            power = 2 if match["square"] else 3
        else:
            entry = _entry(match["name"])
            name = singular(match["name"])
            exponent = sign * power * int(match["power"] or 1)
            power = 1
            names.add(name)
            known &= entry is not None
            entry = entry or _Entry(((name, 1),), Fraction(1))
            factor *= entry.factor**exponent
            offset = entry.offset
            for base, base_power in entry.base:
                dimension[base] += base_power * exponent
    if not names:
        return None
    return Unit(tuple(sorted(item for item in dimension.items() if item[1])), factor, offset, frozenset(names), known)


def singular(word: str) -> str:
    """Lower case without a plural s; currency signs become words."""
    word = CURRENCY_WORDS.get(word, word.lower())
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    return word[:-1] if len(word) > 2 and word.endswith("s") else word


def _entry(name: str) -> _Entry | None:
    """Symbols by exact case (mW, MW), words in any."""
    return _UNITS.get(name) or _UNITS.get(name.lower()) or _UNITS.get(singular(name)) or _UNITS.get(name.upper())


def _replace_phrase(match: re.Match[str]) -> str:
    return f" {list(_PHRASES.values())[(match.lastindex or 1) - 1]} "
