"""Whatever the kind: an answer equals itself, nothing fails, and no answer without content is paid."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.records import AnswerKind, Finish, Verdict
from tasks.rewards.normalise import normalise
from tasks.rewards.reasons import Reason
from tasks.rewards.rules import Gold, check, examine, is_same

UNITS = ("km", "kg", "m/s", "square miles", "°C", "apples", "hours", "MB", "people per km²")
K = AnswerKind

words = st.text(alphabet="abcdefghijklmnopqrstuvwxyzéß漢字かな", min_size=1, max_size=12).filter(
    lambda text: normalise(text) != ""
)
numbers = (
    st.integers(-(10**18), 10**18).map(str)
    | st.integers(-(10**12), 10**12).map(lambda value: f"{value:,}")
    | st.decimals(-(10**9), 10**9, places=4).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.fractions(max_denominator=1000).map(str)
    | st.integers(0, 10**6).map(lambda value: f"${value:,}")
)
quantities = st.builds("{} {}".format, st.decimals(-(10**6), 10**6, places=2), st.sampled_from(UNITS))
percents = st.builds(
    "{}{}".format, st.decimals(-1000, 1000, places=1), st.sampled_from(["%", " percent", " per cent", "‰"])
)
tolerant = st.builds("{} ± {}".format, st.decimals(-100, 100, places=2), st.decimals(0, 5, places=2))
days = st.dates(datetime.date(1, 1, 1))
dates = st.one_of(
    days.map(datetime.date.isoformat),
    days.map(lambda day: f"{day.day}/{day.month}/{day.year:04}"),
    days.map(lambda day: f"{day.day} {day:%B} {day.year}"),
    st.integers(1000, 2100).map(str),
    st.integers(100, 209).map(lambda decade: f"{decade}0s"),
    st.builds("Q{} {}".format, st.integers(1, 4), st.integers(1900, 2100)),
)
elements = st.lists(words | numbers | quantities, min_size=2, max_size=6).map(tuple)
TYPED = st.one_of(
    st.tuples(st.sampled_from([K.NUMBER, K.QUANTITY, K.PERCENT]), numbers | quantities | percents | tolerant),
    st.tuples(st.just(K.DATE), dates),
    st.tuples(st.sampled_from([K.TEXT, K.FREE_TEXT, K.CODE]), words | st.lists(words, min_size=1).map(" ".join)),
    st.tuples(st.just(K.YES_NO), st.sampled_from(["yes", "no", "Yes", "NO", "true", "False", "是", "否"])),
    st.tuples(st.just(K.LETTER), st.sampled_from("ABCDEFGH")),
)
nasty = st.text(max_size=80) | st.text(
    alphabet="\\boxed{}()[]<>/think answer is:0123456789.,%$±^!-'\"`\n年月亿", max_size=80
)


@given(TYPED)
def test_an_answer_equals_itself(typed: tuple[AnswerKind, str]) -> None:
    kind, text = typed
    gold = Gold((text,), kind)
    assert is_same(text, gold)
    assert check(rf"\boxed{{{text}}}", Finish.FINISHED, gold) is Verdict.CORRECT
    assert check(f"<think>\n\\boxed{{0}}</think>\nThe answer is {text}", Finish.FINISHED, gold) is Verdict.CORRECT


@given(st.sampled_from([K.LIST, K.ORDERED_LIST, K.SET]), elements)
def test_a_list_equals_itself(kind: AnswerKind, gold: tuple[str, ...]) -> None:
    assert check(rf"\boxed{{{'; '.join(gold)}}}", Finish.FINISHED, Gold(gold, kind)) is Verdict.CORRECT


@given(elements, st.randoms())
def test_order_matters_only_where_it_is_asked_for(gold: tuple[str, ...], random: object) -> None:
    shuffled = "; ".join(reversed(gold))
    assert is_same(shuffled, Gold(gold, K.LIST)) and is_same(shuffled, Gold(gold, K.SET))
    assert not is_same("; ".join([*gold, "one more"]), Gold(gold, K.SET))


@given(nasty, nasty, st.sampled_from(Finish), st.sampled_from(K))
def test_no_input_breaks_a_check(reply: str, gold: str, finish: Finish, kind: AnswerKind) -> None:
    # without the marks of mathematics: those go to other processes, see test_algebra.py
    checked = examine(reply.replace("^", " ").replace("!", " "), finish, Gold((gold.replace("^", ""),), kind, reply))
    assert checked.reason in Reason
    assert checked.verdict is not Verdict.CORRECT or checked.extracted


@pytest.mark.parametrize("kind", K)
@given(st.text(alphabet=" .:;!?*-_—…\"'`\n\t", max_size=20))
def test_an_answer_without_content_is_never_paid(kind: AnswerKind, reply: str) -> None:
    for gold in ("7", "A", "yes", "the", reply or "x"):
        if kind is not K.CODE or gold != reply:
            assert check(reply, Finish.FINISHED, Gold((gold,), kind)) is not Verdict.CORRECT
