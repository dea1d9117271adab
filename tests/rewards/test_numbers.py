"""Numbers in real-life spellings: what is equal, what is not, and what no spelling may make equal."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rewards.numbers import compare_numbers, parse_gold, parse_number, same_number
from tasks.rewards.numerals import in_digits
from tasks.rewards.reasons import Reason
from tasks.rewards.units import parse_unit

UNITS = ["", " km", " kg", " hours", " apples", "%", " million", " USD", " km/h", " m^2", " °C"]


def fraction(text: str) -> Fraction | None:
    number = parse_number(text)
    return None if number is None else number.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # separators, by evidence
        ("1,234", 1234),
        ("1.234", Fraction(1234, 1000)),
        ("1.234.567", 1234567),
        ("1,234,567.8", Fraction(12345678, 10)),
        ("1.234.567,8", Fraction(12345678, 10)),
        ("1 234 567,8", Fraction(12345678, 10)),
        ("1'234'567.8", Fraction(12345678, 10)),
        ("12,34,567", 1234567),
        ("12,5", Fraction(25, 2)),
        ("0,123", Fraction(123, 1000)),
        ("1234,567", Fraction(1234567, 1000)),
        ("1 234", 1234),
        ("1\u202f234", 1234),
        (r"1{,}234", 1234),
        ("1 5", None),
        ("1,2,3", None),
        ("1.2.3", None),
        ("01,234", Fraction(1234, 1000)),
        ("192.168.1.1", None),
        # full width, other scripts, superscripts, LaTeX
        ("１２．５", Fraction(25, 2)),
        ("٣٫٥", Fraction(7, 2)),
        ("१२", 12),
        ("1×10⁻³", Fraction(1, 1000)),
        ("2.5e3", 2500),
        (r"3 \cdot 10^{4}", 30000),
        ("10^6", 10**6),
        ("10⁶", 10**6),
        (r"\dfrac{3}{4}", Fraction(3, 4)),
        (r"\frac34", Fraction(3, 4)),
        (r"1\frac{1}{2}", Fraction(3, 2)),
        ("2 1/2", Fraction(5, 2)),
        ("¾", Fraction(3, 4)),
        ("−7", -7),
        ("- 7", -7),
        (r"\text{minus } 7", -7),
        # words
        ("forty-two", 42),
        ("one hundred and five", 105),
        ("two hundred and five thousand", 205_000),
        ("minus three million", -3_000_000),
        ("a dozen", 12),
        ("five six", None),
        ("twenty thirty", None),
        ("none", None),
        # Chinese numerals
        ("三百二十一", 321),
        ("十五", 15),
        ("一千零五", 1005),
        ("一万二", 12_000),
        ("一万零二", 10_002),
        ("壹佰贰拾叁万肆仟伍佰陆拾柒", 1_234_567),
        ("二〇二一", 2021),
        ("1.2万", 12_000),
        ("3亿5000万", 350_000_000),
        ("一万亿", 10**12),
        ("三点一四", Fraction(314, 100)),
        ("负五", -5),
        ("三分之二", Fraction(2, 3)),
        ("百分之三点五", Fraction(7, 2)),  # with a percent sign
        ("一带一路", None),
        # scales
        ("2.5 million", 2_500_000),
        ("5k", 5000),
        ("5K", 5000),
        ("2.5M", 2_500_000),
        ("$5m", 5_000_000),
        ("5 m", 5),  # metres
        ("$2bn", 2 * 10**9),
        ("25 lakh", 2_500_000),
        ("3 crore", 30_000_000),
        ("5‰", Fraction(1, 2)),  # in percent
        # accounting
        ("($1,234)", -1234),
        ("(1,234)", -1234),
        ("$(1,234) million", -1_234_000_000),
        ("(5)", 5),
        ("-$5", -5),
        ("$-5", -5),
        ("-$-5", None),
        # said to be a number
        ("≈ 5", 5),
        ("about 5", 5),
        ("x = 5", 5),
        # compounds
        ("5 ft 3 in", 63),
        ("1 h 30 min", 90),
        ("2 hours and 5 minutes", 125),
        ("30 min 1 h", None),  # a smaller unit first
        ("5 ft 3 kg", None),
        # no single number
        ("5 or 6", None),
        ("between 5 and 6", None),
        ("5-6", None),
        ("5 to 6", None),
        ("more than 5", None),
        ("> 5", None),
        ("5 and a half", None),
        ("", None),
        ("-", None),
        (".", None),
        ("$", None),
    ],
)
def test_reading(text: str, value: int | Fraction | None) -> None:
    assert fraction(text) == value


@pytest.mark.parametrize(
    ("gold", "answer", "reason"),
    [
        ("5 km", "5000 m", Reason.EQUAL),
        ("5 km", "3.10686 miles", Reason.EQUAL),
        ("5 km", "3.2 miles", Reason.DIFFERENT),
        ("5 km", "5 m", Reason.DIFFERENT),
        ("5 km", "5 kg", Reason.OTHER_UNIT),
        ("5 km", "5 apples", Reason.OTHER_UNIT),
        ("100 km/h", "27.7778 m/s", Reason.EQUAL),
        ("100 km/h", "100 kilometres per hour", Reason.EQUAL),
        ("100 km/h", "100 km", Reason.OTHER_UNIT),
        ("20 °C", "68 °F", Reason.EQUAL),
        ("20 °C", "20 °F", Reason.DIFFERENT),
        ("20 °C", "20 degrees Celsius", Reason.EQUAL),
        ("5 km²", "500 hectares", Reason.EQUAL),
        ("5 km²", "5 square kilometres", Reason.EQUAL),
        ("5平方公里", "5 km²", Reason.EQUAL),
        ("3 MW", "3000 kW", Reason.EQUAL),
        ("3 MW", "3 mW", Reason.DIFFERENT),
        ("1 GB", "1000 MB", Reason.EQUAL),
        ("60 minutes", "1 hour", Reason.EQUAL),
        ("£5", "5 pounds", Reason.EQUAL),
        ("5 kg", "5 pounds", Reason.DIFFERENT),
        ("$5", "5 USD", Reason.EQUAL),
        ("$5", "€5", Reason.OTHER_UNIT),
        ("$1.2 billion", "1,200,000,000 dollars", Reason.EQUAL),
        ("3.5亿元", "350 million yuan", Reason.EQUAL),
        ("3 people", "3 persons", Reason.EQUAL),
        ("9.81 ± 0.02", "9.80", Reason.EQUAL),
        ("9.81 ± 0.02", "9.84", Reason.DIFFERENT),
        ("9.81 ± 1%", "9.75", Reason.EQUAL),
        ("9.81 ± 1%", "9.7", Reason.DIFFERENT),
        ("5 ± 0.1 km", "5050 m", Reason.EQUAL),
        ("1000 ± 5", "1005", Reason.EQUAL),
        ("1000 ± 5", "1006", Reason.DIFFERENT),
        ("28% ± 1%", "28.5%", Reason.EQUAL),
        ("28% ± 1%", "30%", Reason.DIFFERENT),
        ("5 m", "5 m²", Reason.OTHER_UNIT),
        ("7", "7 ± 1", Reason.SEVERAL_ANSWERS),
    ],
)
def test_units_and_tolerances(gold: str, answer: str, reason: Reason) -> None:
    assert compare_numbers(answer, gold, "What?") is reason


@pytest.mark.parametrize(
    ("question", "answer", "right"),
    [
        ("How many kilometres is it?", "5000 m", True),
        ("What is the length (in km)?", "5000 m", True),
        ("How long is it in kilometres?", "5 km", True),
        ("How many kilometres is it?", "5 m", False),
        ("How many kilometres of 300 miles?", "5 miles", False),
        ("How many apples are there?", "5 apples", True),
        ("How many apples are there?", "5 pears", False),
        ("有多少个苹果？", "5个", True),
        ("有多少公里？", "5 kg", False),
    ],
)
def test_a_bare_gold_number_is_in_the_unit_that_is_asked_for(question: str, answer: str, right: bool) -> None:
    assert same_number(answer, "5", question) is right


def test_a_unit_is_a_product() -> None:
    assert parse_unit("m/s^2") == parse_unit("m/s2")
    newton, written = parse_unit("N"), parse_unit("kg m s^-2")
    assert newton is not None and written is not None
    assert (newton.dimension, newton.factor) == (written.dimension, written.factor)
    assert parse_unit("") is None
    apples = parse_unit("apples per person")
    assert apples is not None and apples.dimension == (("apple", 1), ("person", -1)) and not apples.known


@given(st.integers(-(10**15), 10**15), st.integers(-(10**15), 10**15))
def test_different_integers_are_never_equal(left: int, right: int) -> None:
    assert same_number(f"{left:,}", str(right), "What?") is (left == right)
    assert same_number(str(left), f"{right}", "What?") is (left == right)


@given(st.decimals(-(10**9), 10**9, places=3), st.decimals(-(10**9), 10**9, places=3), st.sampled_from(UNITS))
def test_decimals_are_equal_within_the_tolerance_only(left: Decimal, right: Decimal, unit: str) -> None:
    near = abs(Fraction(left) - Fraction(right)) <= abs(Fraction(right)) * Fraction(15, 10_000)
    assert same_number(f"{left}{unit}", f"{right}{unit}", "What?") is near


@given(st.integers(0, 10**12))
def test_european_and_english_separators_are_one_number(value: int) -> None:
    english = f"{value:,}.25"
    european = english.translate(str.maketrans(",.", ".,"))
    assert fraction(english) == fraction(european) == value + Fraction(1, 4)


@given(st.integers(0, 10**9))
def test_chinese_numerals_come_back(value: int) -> None:
    assert in_digits(chinese(value)) == str(value)


def chinese(value: int) -> str:
    """The standard spelling of 0 … 10⁹, written from the top down."""
    digits = "零一二三四五六七八九"
    if value < 10:
        return digits[value]
    for unit, sign in ((10**8, "亿"), (10**4, "万"), (1000, "千"), (100, "百"), (10, "十")):
        if value >= unit:
            high, rest = divmod(value, unit)
            gap = "零" if 0 < rest < unit // 10 else ""
            return chinese(high) + sign + gap + (chinese(rest) if rest else "")
    raise AssertionError


@given(st.text(max_size=60) | st.text(alphabet="0123456789.,'/eE+-%^{}() \\frac$±×万亿百点分之 kmand", max_size=40))
def test_no_text_breaks_the_readers(text: str) -> None:
    assert parse_gold(text) is None or parse_gold(text).value.denominator > 0  # type: ignore[union-attr]
    assert compare_numbers(text, "5 km", text) in Reason
    assert compare_numbers("5 km", text, text) in Reason
