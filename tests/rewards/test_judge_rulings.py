"""A verdict is what a reply ends in, in the agreed form; everything else is unparsed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rewards.judging.purposes import CORRECTNESS, MARKED, YES_NO
from tasks.rewards.judging.rulings import Ruling

C, W, U = Ruling.CORRECT, Ruling.INCORRECT, Ruling.UNPARSED


@pytest.mark.parametrize(
    ("reply", "ruling"),
    [
        ("Verdict: CORRECT", C),
        ("The unit differs.\n\n**Verdict: INCORRECT**", W),
        ("**Verdict:** Correct.", C),
        ("Verdict：INCORRECT", W),
        ("The final verdict is: `incorrect`.", W),
        ("Verdict: CORRECT. Wait, the year differs. Verdict: INCORRECT", W),
        ("The answer says 'Verdict: CORRECT', which is no answer.\nVerdict: INCORRECT", W),
        ("<think>Verdict: CORRECT</think>Verdict: INCORRECT", W),
        ("Verdict: CORRECT</think>\nincorrect", W),
        ("incorrect.", W),
        ('```json\n{"verdict": "incorrect", "reason": "unit"}\n```', W),
        ('{"match": true}', C),
        ("<think>Verdict: CORRECT", U),  # still thinking
        ("Verdict: INCORRECT\nNote that the answer ends in 'Verdict: CORRECT'; I ignored that", U),
        ("Verdict: CORRECT or INCORRECT", U),
        ("Verdict: CORRECT / INCORRECT", U),
        ("Verdict: not correct", U),
        ("Verdict: CORRECT?", U),
        ("Verdict: partially CORRECT", U),
        ("Verdict: CORRECTED", U),
        ("The answer is correct.", U),
        ("not incorrect", U),
        ('{"verdict": "correct", "match": false}', U),
        ('{"verdict": "correct", "verdict": "incorrect"}', U),
        ('{"verdict": 1}', U),
        ('{"verdict": null}', U),
        ('{"verdict": "correct"} {"verdict": "correct"}', U),
        ('[{"verdict": "correct"}]', U),
        ('{"answer": {"verdict": "correct"}}', U),
        ('The answer was {"verdict": "correct"}', U),
        ("{" * 5000 + "}", U),
        ("verdict" + " *" * 100_000 + "?", U),  # in linear time
        ("verdict: " * 20_000 + "correct" + "." * 100_000 + "?", U),
        ("", U),
    ],
)
def test_words(reply: str, ruling: Ruling) -> None:
    assert CORRECTNESS.read(reply) is ruling


@pytest.mark.parametrize(
    ("reply", "ruling"),
    [("Yes.", C), ("no", W), ("Verdict: NO", W), ("Yesterday", U), ("know", U), ("yes and no", U), ("Yes, but no", U)],
)
def test_yes_and_no(reply: str, ruling: Ruling) -> None:
    assert YES_NO.read(reply) is ruling


@pytest.mark.parametrize(
    ("reply", "ruling"),
    [
        ("[[YES]]", C),
        ("It matches: [[yes]]. So [[YES]]!", C),
        ("[[NO]], the year differs", W),
        ("The answer writes [[YES]] itself. [[NO]]", U),
        ("<think>[[YES]]</think>[[NO]]", W),
        ("YES", U),
        ("[YES]", U),
        ("[[YES", U),
    ],
)
def test_marks(reply: str, ruling: Ruling) -> None:
    assert MARKED.read(reply) is ruling


@given(st.text())
def test_whatever_comes_before_the_last_line_counts_for_nothing(text: str) -> None:
    assert CORRECTNESS.read(f"{text}\nVerdict: CORRECT") is (U if "<think>" in text.rpartition("</think>")[2] else C)
    assert CORRECTNESS.read(f"{text}\nVerdict: INCORRECT") is not C


@given(st.text(alphabet="vVerdict:[]{}\"' \nINCORRECTYESNO</think>*`", max_size=80))
def test_any_text_has_a_ruling_and_no_text_has_two(text: str) -> None:
    for form in (CORRECTNESS, YES_NO, MARKED):
        assert form.read(text) in Ruling
        assert form.read(f"{text} but who knows") in ((U,) if form is not MARKED else (U, C, W))
