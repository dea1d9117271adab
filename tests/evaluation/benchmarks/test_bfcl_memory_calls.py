"""Calls in Python's syntax, as models write them. Nothing is evaluated."""

import json
from keyword import iskeyword

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.evaluation.benchmarks.bfcl_calls import Call, parse_calls

NAMES = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True).filter(lambda name: not iskeyword(name))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
CALLS = st.builds(Call, NAMES, st.dictionaries(NAMES, VALUES, max_size=3))


@pytest.mark.parametrize(
    ("reply", "calls"),
    [
        ("[f(a='x'), g()]", ["f(a='x')", "g()"]),
        ("f(a='x')", ["f(a='x')"]),  # BFCL adds the brackets
        ("[f(a='x')", ["f(a='x')"]),
        ("```\n[f(a=1)]\n```", ["f(a=1)"]),
        ("f(a='it\\'s', b=-2, c=[1, 'z'], d={'k': None}, e=(1, 2))", None),
        ("f('dropped', a=1)", ["f(a=1)"]),  # arguments by position are dropped
        ("f(a=word)", ["f(a='word')"]),
        ("f(a='one ' + 'two')", ["f(a='one two')"]),
        ("f(a=...)", ["f(a='...')"]),
        ("f(a=g(b=1))", ["f(a=g(b=1))"]),
        ("f(a=g(1))", ["f(a='g(1)')"]),
        ("f(a=b[0])", ["f(a='b[0]')"]),
        ("memory.add(key='a')", ["memory.add(key='a')"]),
    ],
)
def test_calls(reply: str, calls: list[str] | None) -> None:
    expected = calls or ["f(a=\"it's\", b=-2, c=[1, 'z'], d={'k': None}, e=(1, 2))"]
    assert [str(call) for call in parse_calls(reply)] == expected


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "[]",
        "`\n ",
        "You live in Leuven.",
        "{'answer': 'Leuven', 'context': 'You said so.'}",
        "[f(a='x'), 'and prose']",
        "```python\n[f(a=1)]\n```",  # the official parser does not know the fence's language
        "f(a=9**9**9**9)",
        "f(a='x' * 10**12)",
        "f(a=__import__('os').system)",
        "f(a=lambda: 1)",
        "f(a=1 if b else 2)",
        "f(**{'a': 1})",
        "f(a=f'{b}')",
        "f(a={[]: 1})",
        "[f(a=1)][0]",
        "[f(a=x) for x in y]",
        "(f)(a=1)(b=2)",
        "f(a='\0')",
        "f(a=" + "9" * 5000 + ")",
        "[" * 100_000,
        "f(a=" + "(" * 5000 + ")" * 5000 + ")",
        "f(a=" + "-" * 100_000 + "1)",
        "f(a=" + "'x'+" * 20_000 + "'x')",
        "f(a=" + "[" * 150 + "]" * 149 + ")",
    ],
    ids=lambda reply: reply[:20],
)
def test_no_calls(reply: str) -> None:
    assert parse_calls(reply) == ()


def test_a_dangerous_name_is_only_a_name() -> None:
    (call,) = parse_calls("f(a=__import__('os'))")
    assert call.arguments == {"a": "__import__('os')"}


@settings(max_examples=50)
@given(st.lists(CALLS, min_size=1, max_size=3))
def test_what_is_written_is_read(calls: list[Call]) -> None:
    assert parse_calls(f"[{', '.join(map(str, calls))}]") == tuple(calls)


@given(st.text() | st.text(alphabet="f(a='x')[], +-*{}:\"\\\n"))
def test_any_text_is_read_or_refused(text: str) -> None:
    for call in parse_calls(text):
        json.dumps(call.name)
