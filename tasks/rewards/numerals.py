"""Numbers written in words, English or Chinese, rewritten in digits."""

import re
from fractions import Fraction

_ONES = dict(
    zip(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
        " seventeen eighteen nineteen".split(),
        range(20),
        strict=True,
    )
)
_TENS = dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SMALL = "|".join([*_ONES, *_TENS])
_LARGE = "|".join(["hundred", *_SCALES, "dozen"])
_ENGLISH_RUN = re.compile(
    rf"(?:\b(?:minus|negative)\s+)?\b(?:(?:{_SMALL})|an?\s+(?:{_LARGE}))"
    rf"(?:(?:\s+and\s+|\s*-\s*|\s+)(?:{_SMALL}|{_LARGE}))*\b",
    re.IGNORECASE,
)

_DIGITS = {
    **{digit: value for value, digit in enumerate("零一二三四五六七八九")},
    **{digit: value for value, digit in enumerate("〇壹贰叁肆伍陆柒捌玖")},
    **{digit: value for value, digit in enumerate("〇壹貳參肆伍陸柒捌玖")},
    "两": 2,
    "兩": 2,
}
_PLACES = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_GROUPS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_PART = rf"[{''.join([*_DIGITS, *_PLACES, *_GROUPS])}点點0-9.,]+"
_ANY_CHINESE = re.compile(rf"[{''.join([*_DIGITS, *_PLACES, *_GROUPS])}]")
_CHINESE_RUN = re.compile(
    rf"(?P<sign>[负負]?)(?:(?P<of>百|千|{_PART})分之)?(?P<number>{_PART})",
)
_ARABIC = re.compile(r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")


def in_digits(text: str) -> str:
    """Rewrite every number word of `text`: "forty-two km" → "42 km", "百分之三点五" → "3.5%", "1.2万" → "12000".

    What is no number in words stays: "一带一路" becomes nonsense in digits, which no number grammar accepts either.
    """
    if _ANY_CHINESE.search(text):
        text = _CHINESE_RUN.sub(_chinese_in_digits, text)
    return _ENGLISH_RUN.sub(_english_in_digits, text)


def _english_in_digits(match: re.Match[str]) -> str:
    words = re.split(r"[\s-]+", match[0].lower())
    negative = words[0] in ("minus", "negative")
    value = _english_value([word for word in words if word not in ("a", "an", "and", "minus", "negative")])
    return match[0] if value is None else f"{'-' if negative else ''}{value}"


def _english_value(words: list[str]) -> int | None:
    """ "two hundred and five thousand" is (2 · 100 + 5) · 1000. None for "five six", two numbers."""
    total, section, last = 0, 0, 0
    for word in words:
        value = _ONES.get(word, _TENS.get(word, 0))
        if word in _SCALES:
            total, section, last = total + (section or 1) * _SCALES[word], 0, 0
        elif word in ("hundred", "dozen"):
            section, last = (section or 1) * (100 if word == "hundred" else 12), 100
        elif last and (last < 20 or value >= last or value >= 10 > last):
            return None
        else:
            section, last = section + value, value if word != "zero" else 1
    return total + section


def _chinese_in_digits(match: re.Match[str]) -> str:
    if not _ANY_CHINESE.search(match[0]) and not match["of"]:
        return match[0]  # digits only
    sign = "-" if match["sign"] else ""
    value = _chinese_value(match["number"])
    whole = _chinese_value(match["of"]) if match["of"] else None
    if value is None or (match["of"] and whole is None):
        return match[0]
    if whole in (100, 1000):
        return f"{sign}{_written(value)}{'%' if whole == 100 else '‰'}"
    return f"{sign}{_written(value)}/{_written(whole)}" if whole is not None else f"{sign}{_written(value)}"


def _chinese_value(text: str) -> Fraction | None:
    """二千零五, 二〇二一, 三点一四, 1.2万, 3亿5000万; None for anything else."""
    for signs in ("亿億", "万萬"):
        at = max(text.rfind(sign) for sign in signs)
        if at >= 0:
            left, right = _chinese_value(text[:at]), _rest_value(text[at + 1 :], _GROUPS[text[at]])
            return None if left is None or right is None else left * _GROUPS[text[at]] + right
    if _ARABIC.fullmatch(text):
        return Fraction(text.replace(",", ""))
    whole, _, decimals = re.sub("[點]", "点", text).partition("点")
    value = _section_value(whole)
    if value is None or (decimals and not set(decimals) <= set(_DIGITS)):
        return None
    return value + Fraction("0." + "".join(str(_DIGITS[digit]) for digit in decimals)) if decimals else value


def _section_value(text: str) -> Fraction | None:
    """Below 万: 三百二十一, 十五, 二〇二一, 5百."""
    if text and set(text) <= set(_DIGITS):
        return Fraction(int("".join(str(_DIGITS[digit]) for digit in text)))
    for signs in ("千仟", "百佰", "十拾"):
        at = max(text.find(sign) for sign in signs)
        if at >= 0:
            left = text[:at].lstrip("零〇")
            head = _section_value(left) if left and not _ARABIC.fullmatch(left) else Fraction(left or 1)
            right = _rest_value(text[at + 1 :], _PLACES[text[at]])
            return None if head is None or right is None else head * _PLACES[text[at]] + right
    return None


def _rest_value(text: str, unit: int) -> Fraction | None:
    """What follows a unit. A single digit means the next lower place: 一万二 is 12,000, 一万零二 is 10,002."""
    if not text:
        return Fraction(0)
    if text in _DIGITS and unit > 10:
        return Fraction(_DIGITS[text] * unit // 10)
    return _chinese_value(text.lstrip("零〇") or "零")


def _written(value: Fraction) -> str:
    """An exact decimal; all values here have one."""
    if value.denominator == 1:
        return str(value.numerator)
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    digits = str((value * 10**places).numerator).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}"
