"""OpenAI MRCR: reading, the official grade with difflib's own settings, and what the robust one forgives."""

import json
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import InputError
from tasks.evaluation.benchmarks import mrcr
from tasks.evaluation.benchmarks.base import Attempt
from tasks.evaluation.benchmarks.conversation import Message
from tasks.evaluation.benchmarks.mrcr import MRCR, MrcrTask, bin_of, bin_of_texts, grade, grade_robust
from tasks.records import Finish

FIXTURE = Path(__file__).parent / "fixtures/mrcr"
PREFIX, ANSWER = "Qz7Kd2", "Qz7Kd2Tapirs wander at dusk."
PROSE = "The ferry left at noon, and nobody on the pier knew whether it would ever come back from the far island. " * 4


def task(answer: str = ANSWER, prefix: str = PREFIX) -> MrcrTask:
    return MrcrTask(id="t", context="", question="", gold=(answer,), prefix=prefix, spans=())


def scores(reply: str, answer: str = ANSWER, finish: Finish = Finish.FINISHED) -> tuple[float, float, bool]:
    (score,) = MRCR.score([Attempt(task(answer), reply, finish)], None)
    assert score.official is not None and score.robust is not None
    return round(score.official, 4), round(score.robust, 4), score.answered


def test_the_official_files_are_read() -> None:
    first, second, third = MRCR.read(FIXTURE)
    assert [one.id for one in (first, second, third)] == ["2needle-0", "2needle-1", "4needle-0"]
    assert first.subset == "2 needles | under 4K | 2 needles, under 4K"
    assert first.gold[0].startswith("Qz7Kd2aB9xA lamp, a moth")
    assert first.context.startswith("User: write a poem about lamps\nAssistant: The lamp at the pier\ncounts")
    assert MRCR.prompt(first).endswith(f"\nUser: {first.question}")
    assert first.question.startswith("Prepend Qz7Kd2aB9x to the 2nd")


def test_its_turns_are_the_official_messages() -> None:
    (row,) = pq.read_table(FIXTURE / "4needle/4needle_0.parquet").to_pylist()
    *_, task = MRCR.read(FIXTURE)
    assert MRCR.turns(task) == [Message(turn["role"], turn["content"]) for turn in json.loads(row["prompt"])]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prompt": "[{"}, "no JSON"),
        ({"prompt": '["Hi"]'}, "no list of objects"),
        ({"prompt": "[]"}, "does not end with the user"),
        ({"prompt": '[{"role": "assistant", "content": "Hi"}]'}, "does not end with the user"),
        ({"prompt": '[{"role": "tool", "content": "Hi"}]'}, "role 'tool'"),
        ({"random_string_to_prepend": ""}, "does not begin with its prefix ''"),  # every reply would pass the gate
        ({"random_string_to_prepend": "Other1"}, "does not begin with its prefix 'Other1'"),
        ({"answer": 7}, "no string"),
    ],
)
def test_rows_that_are_not_as_the_card_says(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    (row,) = pq.read_table(FIXTURE / "4needle/4needle_0.parquet").to_pylist()
    (tmp_path / "4needle").mkdir()
    pq.write_table(pa.Table.from_pylist([row | changes]), tmp_path / "4needle/4needle_0.parquet")
    with pytest.raises(InputError, match=said):
        list(MRCR.read(tmp_path))


def test_the_release_with_wrong_answers_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "2needle.parquet").write_bytes((FIXTURE / "2needle/2needle_0.parquet").read_bytes())
    with pytest.raises(InputError, match="holds no"):
        list(MRCR.read(tmp_path))


@pytest.mark.parametrize(
    ("reply", "official", "robust", "answered"),
    [  # EV-02, and others of its kind
        (ANSWER, 1.0, 1.0, True),
        (f" {ANSWER}", 0.0, 1.0, False),
        (f"<think>x</think>{ANSWER}", 1.0, 1.0, True),
        (f"<think>x</think>\n\n{ANSWER}", 1.0, 1.0, True),  # the template's line breaks
        (f"<think>x</think> {ANSWER}", 0.0, 1.0, False),
        (f"x</think>{ANSWER}", 1.0, 1.0, True),  # the template opened it
        (f"<think>{ANSWER}", 0.0, 0.0, False),  # never closed
        ("Qz7Kd2 Tapirs wander at dusk.", 0.9778, 0.9778, True),
        (ANSWER.lower(), 0.0, 0.0, False),
        (PREFIX, 0.0, 0.0, True),
        ("", 0.0, 0.0, False),
        (f'"{ANSWER}"', 0.0, 1.0, False),
        (f"“{ANSWER}”", 0.0, 1.0, False),
        (f"**{ANSWER}**", 0.0, 1.0, False),
        (f"```\n{ANSWER}\n```", 0.0, 1.0, False),
        ("**Qz7Kd2**Tapirs wander at dusk.", 0.0, 1.0, False),
        (f"Here it is: {ANSWER}", 0.0, 0.0, False),  # "Do not include any other text"
        (f"{ANSWER}\n\nAnything else?", 0.7333, 0.7333, True),
    ],
)
def test_ev02_the_gate(reply: str, official: float, robust: float, answered: bool) -> None:
    assert scores(reply) == (official, robust, answered)


def test_ev02_frequent_characters_do_not_match_in_long_answers() -> None:
    answer = PREFIX + "acgt" * 100
    assert scores(f"{PREFIX}\n{'acgt' * 100}", answer) == (0.0, 0.9988, True)


@given(st.text("ab c.", max_size=300), st.text("ab c.", max_size=300))
def test_the_official_grade_is_the_card_s(said: str, answer: str) -> None:
    assert grade(PREFIX + said, PREFIX + answer, PREFIX) == SequenceMatcher(None, said, answer).ratio()


@given(st.text("ab\n *", max_size=40), st.text('ab *"', max_size=300), st.text("ab ", max_size=300))
def test_the_robust_grade_is_never_below(lead: str, said: str, answer: str) -> None:
    for reply in (PREFIX + said, lead + PREFIX + said):
        official, robust = grade(reply, PREFIX + answer, PREFIX), grade_robust(reply, PREFIX + answer, PREFIX)
        assert 0 <= official <= robust <= 1


def test_the_grade_is_exact_up_to_the_cap_and_bounded_beyond() -> None:
    answer = "Rain fell on Oslo; 7 ferries waited."
    exact = f"{PREFIX}{answer}{'.' * (mrcr.LONGEST_REPLY - len(answer))}"
    assert grade(exact, PREFIX + answer, PREFIX) == SequenceMatcher(None, exact[len(PREFIX) :], answer).ratio()
    late = f"{PREFIX}{'-' * mrcr.LONGEST_REPLY}{answer}"  # beyond the cap nothing matches, all counts as length
    assert grade(late, PREFIX + answer, PREFIX) == 0.0
    early = f"{PREFIX}{answer}{'-' * 10 * mrcr.LONGEST_REPLY}"
    whole = len(answer) * 2 + 10 * mrcr.LONGEST_REPLY
    assert grade(early, PREFIX + answer, PREFIX) == pytest.approx(2 * len(answer) / whole)


def test_another_piece_of_prose_scores_low() -> None:
    other = "".join(reversed(PROSE.split(" ")))
    assert scores(PREFIX + other, PREFIX + PROSE)[1] < 0.4


@pytest.mark.parametrize(
    ("tokens", "name"),
    [
        (4095, "under 4K"),
        (4096, "4K-8K"),
        (8192, "4K-8K"),
        (8193, "8K-16K"),
        (131072, "64K-128K"),
        (131073, "128K-256K"),
        (1048576, "512K-1M"),
        (1048577, "over 1M"),
    ],
)
def test_bins_are_closed_on_the_right(tokens: int, name: str) -> None:
    assert bin_of(tokens) == name


def test_characters_settle_a_bin_and_tokens_the_rest() -> None:
    assert bin_of_texts(["x" * 30_000], count=None) == "4K-8K"  # 5,769 to 7,143 tokens
    assert bin_of_texts(["x" * 39_000, "x" * 1_000], count=None) == "~8K-16K"  # 7,692 to 9,524
    assert bin_of_texts(["x" * 39_000, "x" * 1_000], count=lambda text: len(text) // 5) == "4K-8K"
