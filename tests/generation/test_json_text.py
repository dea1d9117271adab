"""The one object of a reply is found, anything else is refused, and no text is an exception of another kind."""

import json

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tasks.generation.json_text import NoObjectError, find_object

TREES = st.dictionaries(
    st.text(max_size=8),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)
WORDS = st.text(st.characters(exclude_characters="{}`<"), max_size=30)
PIECES = st.sampled_from(
    [
        "{",
        "}",
        '"',
        "\\",
        "[",
        "]",
        ":",
        ",",
        "a",
        " ",
        "\n",
        "```",
        "```json\n",
        "<think>",
        "</think>",
        '{"a": 1}',
        "NaN",
        "1e9",
    ]
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', '{"a": 1}'),
        (' \n{"a": 1}\n', '{"a": 1}'),
        ('Here you are:\n```json\n{"a": 1}\n```\nAnything else?', '{"a": 1}'),
        ('```\n{"a": 1}\n```', '{"a": 1}'),
        ('Sure! {"a": {"b": [1, {"c": 2}]}} Done.', '{"a": {"b": [1, {"c": 2}]}}'),
        ('The set {x} holds. {"a": "}{"}', '{"a": "}{"}'),
        ('{"a": "say \\"}\\" twice"} ok', '{"a": "say \\"}\\" twice"}'),
        ('An example is {"a": 0}. Mine:\n```json\n{"a": 1}\n```', '{"a": 1}'),
        ('{"a": 1} or, once more, {"a": 1}', '{"a": 1}'),
        ('<think>maybe {"a": 0}?</think>{"a": 1}', '{"a": 1}'),
        ('maybe {"a": 0}? </think> So: {"a": 1}', '{"a": 1}'),
        ('{"a": "</think> is a tag"}', '{"a": "</think> is a tag"}'),
        ('```json\n{"a": "```"}\n```', '{"a": "```"}'),
        ('Here: {"a": "<think> is a tag"}', '{"a": "<think> is a tag"}'),
        ("{}", "{}"),
    ],
)
def test_one_object_is_found(text: str, found: str) -> None:
    assert find_object(text) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON object"),
        ("I cannot.", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"a": 1} {"a": 2}', "different"),
        ('```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```', "different"),
        ('{"a": 1', "broken"),
        ('{"facts": [{"a": 1}, {"a": 2', "broken"),  # cut: the first fact is not the answer
        ('{"facts": [{"a": 1}], oops}', "broken"),
        ("{'facts': [{\"a\": 1}]}", "broken"),
        ('{"a": "one\ntwo"}', "broken"),
        ('{"a": NaN}', "NaN is no JSON"),
        ('{"a": 1, "a": 2}', "given twice"),
        ('<think>so {"a": 1}', "no JSON object"),
        ('So {"a": 1}? </think> Sorry, no.', "no JSON object"),
        ('{"a": 0}? </think> {"a": 1}', "different"),
        ('{"a": {"</think>": {"b": 1}}', "broken"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "too deeply"),
        ('{"a": ' + "1" * 5000 + "}", "broken"),
    ],
)
def test_anything_else_is_refused(text: str, reason: str) -> None:
    with pytest.raises(NoObjectError, match=reason):
        find_object(text)


@given(TREES, WORDS, WORDS, st.booleans())
def test_words_around_an_object_change_nothing(tree: dict[str, object], before: str, after: str, pretty: bool) -> None:
    text = json.dumps(tree, indent=2 if pretty else None)
    assume("</think>" not in text)  # with words before it, it would end them
    assert find_object(f"{before}{text}{after}") == text
    assert find_object(f"{before}\n```json\n{text}\n```\n{after}") == text
    assert find_object(f"<think>{text} {{</think>{before}{text}") == text


@given(TREES, st.data())
def test_an_unfinished_object_is_never_taken(tree: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps({"facts": tree})
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    with pytest.raises(NoObjectError):
        find_object(cut)


@given(st.lists(PIECES, max_size=40).map("".join) | st.text())
@example("\ud800{")
def test_any_text_gives_an_object_or_a_reason(text: str) -> None:
    try:
        found = find_object(text)
    except NoObjectError:
        return
    assert isinstance(json.loads(found), dict)
    assert found in text


@pytest.mark.parametrize(
    "piece",
    ["{", '{"', '{"a":', '{"a":"', '{"}":[', "{}", '{"a": 1} ', "```\n", '{"' + "x{" * 9, "</think><think>", "\\"],
)
def test_a_megabyte_is_no_exception_either(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    try:
        assert find_object(text) in ("{}", '{"a": 1}')
    except NoObjectError:
        assert piece not in ("{}", '{"a": 1} ')
