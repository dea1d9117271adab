"""BFCL's memory category: official files, conversations against a scripted model, and two ways to score."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.errors import InputError
from tasks.evaluation.benchmarks.base import Attempt
from tasks.evaluation.benchmarks.bfcl_memory import (
    BFCL_MEMORY_KV,
    BFCL_MEMORY_REC_SUM,
    BfclMemory,
    MemoryTask,
    stated_answer,
)
from tasks.evaluation.benchmarks.conversation import Conversations
from tasks.evaluation.benchmarks.interactive import Model, Played
from tasks.generation.base import Completion, Sampling
from tasks.generation.scripted import ScriptedChat, ScriptedGenerator
from tasks.records import Finish
from tasks.rewards.judge import Judge
from tests.test_tokenization import BYTES

FIXTURE = Path(__file__).parent / "fixtures" / "bfcl_memory"
KEPT = "[core_memory_add(key='city', value='Leuven')]"
ADDED = '{"status": "Key-value pair added."}'
LEUVEN = "{'answer': 'Leuven', 'context': 'You said so.'}"


def tasks_of(scenario: str, benchmark: BfclMemory = BFCL_MEMORY_KV) -> list[MemoryTask]:
    return [task for task in benchmark.read(FIXTURE) if task.subset == scenario]


CITY = tasks_of("customer")[0]


def played(
    tasks: Sequence[MemoryTask],
    *replies: str | Completion,
    window: int = 10**6,
    benchmark: BfclMemory = BFCL_MEMORY_KV,
) -> tuple[list[Played[MemoryTask]], list[str]]:
    generator = ScriptedGenerator(replies)
    model = Model(generator, Conversations(BYTES), Sampling(0.7, 0.95, 64), window)
    found = benchmark.play(tasks, model, seed=0)
    with pytest.raises(IndexError):  # the whole script was spoken
        generator.generate([(0,)], model.sampling, 0)
    return found, [str(BYTES._tokenizer.decode(prompt)) for prompt in generator.prompts[:-1]]


def attempt_of(reply: str, *gold: str, finish: Finish = Finish.FINISHED) -> Attempt[MemoryTask]:
    return Attempt(CITY.model_copy(update={"gold": gold}), reply, finish)


def test_the_official_files() -> None:
    city, lamps, exam = BFCL_MEMORY_KV.read(FIXTURE)
    assert (city.id, city.subset, city.question, city.gold) == (
        "memory_0-customer-0", "customer", "What city do I live in?", ("Leuven",)
    )  # fmt: skip
    assert lamps.gold == ("3", "three")
    assert [session.turns for session in city.sessions] == [
        ("I live in Leuven.", "I ordered three lamps."), ("I moved to Ghent.",)
    ]  # fmt: skip
    assert [session.turns for session in exam.sessions] == [("My exam is on 1 April 2024.",)]
    tools = json.loads(city.tools)
    assert tools[0]["description"] == "Keep a value for later. Note that the provided function is in Python 3 syntax."
    assert list(tools[0]) == ["name", "description", "parameters", "response"]


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("BFCL_v4_memory.json", '"customer"', '"pirate"', "'scenario' = 'pirate'"),
        ("BFCL_v4_memory.json", '"scenario"', '"scene"', "no 'scenario'"),
        ("BFCL_v4_memory.json", "memory_0-", "memory_9-", "has no answer"),
        ("BFCL_v4_memory.json", '"user"', '"assistant"', "one message of the user"),
        ("BFCL_v4_memory.json", "[[", "[[[", "damaged"),
        ("possible_answer/BFCL_v4_memory.json", '["Leuven"]', "[]", "has no answer"),
        ("possible_answer/BFCL_v4_memory.json", '["Leuven"]', '"Leuven"', "no list of strings"),
        ("memory_prereq_conversation/memory_customer.json", '"question"', '"questions"', "no 'question'"),
        ("multi_turn_func_doc/memory_kv.json", "core_memory_clear", "core_memory_wipe", "core_memory_wipe"),
    ],
)
def test_another_release_is_refused(tmp_path: Path, name: str, old: str, new: str, message: str) -> None:
    folder = shutil.copytree(FIXTURE, tmp_path / "data")
    path = folder / name
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        list(BFCL_MEMORY_KV.read(folder))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"memory_kv\.json"):
        list(BFCL_MEMORY_KV.read(tmp_path))


def test_sessions_hand_on_the_memory_and_questions_start_from_the_last() -> None:
    replies = [
        KEPT, "Noted.", "Three lamps, fine.",  # first session: two turns
        "[core_memory_replace(key='city', value='Ghent')]", "Moved.",  # second session
        "[core_memory_clear()]", LEUVEN,  # both questions at once, a step of each in turn
        "{'answer': 'Ghent', 'context': ''}",
    ]  # fmt: skip
    found, prompts = played(tasks_of("customer"), *replies)
    assert [each.attempt.reply for each in found] == ["{'answer': 'Ghent', 'context': ''}", LEUVEN]
    assert "There is no content in the core memory at this point." in prompts[0]
    assert prompts[1].startswith(prompts[0])
    assert f"{KEPT}<|im_end|>\n<|im_start|>tool\n{ADDED}<|im_end|>" in prompts[1]
    assert '"city": "Leuven"' in prompts[3]
    assert "I ordered three lamps" not in prompts[3]
    first, second = prompts[5:7]
    assert '"city": "Ghent"' in first
    assert '"city": "Ghent"' in second  # the other question's clearing is its own
    assert "For your final answer to the user" in first
    assert "For your final answer to the user" not in prompts[0]
    assert first.endswith("What city do I live in?<|im_end|>\n<|im_start|>assistant\n")


def test_tokens_are_of_the_last_prompt_and_of_all_replies_to_a_question() -> None:
    (task,) = tasks_of("student")
    (found,), prompts = played([task], "Noted.", "[core_memory_list_keys()]", LEUVEN)
    assert found.output_tokens == len("[core_memory_list_keys()]") + len(LEUVEN)
    assert found.input_tokens == len(BYTES.encode_reply(prompts[-1]))


def test_a_model_that_calls_on_and_on_is_stopped() -> None:
    (task,) = tasks_of("student")
    calls = ["[core_memory_list_keys()]"] * 21
    (found,), _ = played([task], "Noted.", *calls)
    assert (found.attempt.reply, found.attempt.finish) == ("", Finish.TRUNCATED)


def test_a_session_that_is_stopped_keeps_its_memory_and_loses_its_other_turns() -> None:
    lists = ["[core_memory_list_keys()]"] * 20
    _, prompts = played(tasks_of("customer")[:1], KEPT, *lists, "Moved.", LEUVEN)
    assert not any("I ordered three lamps" in prompt for prompt in prompts)
    assert '"city": "Leuven"' in prompts[-1]


def test_a_session_that_outgrows_the_window_is_lost() -> None:
    (task,) = tasks_of("student")
    (_,), prompts = played([task], KEPT, "Noted.", LEUVEN)
    first, second = (len(BYTES.encode_reply(prompt)) for prompt in prompts[:2])
    assert first < second
    (found,), prompts = played([task], KEPT, window=first)
    assert (found.attempt.reply, found.attempt.finish, found.output_tokens) == ("", Finish.TRUNCATED, 0)
    assert len(prompts) == 1  # the question's prompt, which has the form of the answer too, is longer still


def test_only_the_part_after_the_reasoning_is_called() -> None:
    (task,) = tasks_of("student")
    _, prompts = played([task], f"<think>[core_memory_clear()]</think>\n\n{KEPT}", "Noted.", LEUVEN)
    assert '"city": "Leuven"' in prompts[-1]
    assert "core_memory_clear()" not in prompts[1]


def test_the_summary_backend() -> None:
    tasks = tasks_of("student", BFCL_MEMORY_REC_SUM)
    _, prompts = played(tasks, "[memory_append(text='Exam: April.')]", "ok", "x", benchmark=BFCL_MEMORY_REC_SUM)
    assert "There is no content in the memory at this point." in prompts[0]
    assert "Core Memory" not in prompts[0]
    assert "from previous interactions:\nExam: April." in prompts[-1]


def test_without_tasks_nothing_is_asked() -> None:
    assert played([]) == ([], [])
    assert BFCL_MEMORY_KV.score([], None) == []


@pytest.mark.parametrize(
    ("reply", "gold", "official", "robust"),
    [
        (LEUVEN, ["Leuven"], 1, 1),
        ("{'answer': Leuven, 'context': You said so}", ["Leuven"], 1, 1),  # without quotes, as the prompt has it
        ('{"answer": "Leuven", "context": "You said so"}', ["Leuven"], 1, 1),
        ("{'answer': 'leuven.', 'context': ''}", ["Leuven"], 1, 1),
        ("Leuven", ["Leuven"], 1, 1),
        ("The answer is Leuven.", ["Leuven"], 1, 1),
        ("{'answer': '3', 'context': ''}", ["3", "three"], 1, 1),
        ("{'answer': 'three', 'context': ''}", ["3"], 0, 1),
        ("{'answer': 'April 1 2024', 'context': ''}", ["April 1, 2024"], 1, 1),
        ("{'answer': 'April 1, 2025', 'context': ''}", ["April 1, 2024"], 0, 0),
        ("{'answer': 'steam wand', 'context': ''}", ["frothing pitcher", "steam wand"], 1, 1),
        # a word somewhere in the reply is official enough
        ("{'answer': 'Ghent', 'context': 'You moved there from Leuven.'}", ["Leuven"], 1, 0),
        ("{'answer': '4', 'context': 'You ordered 3, then 1 more.'}", ["3"], 1, 0),
        ("{'answer': 'Leuven or Ghent', 'context': ''}", ["Leuven"], 1, 0),
        ("{'answer': 'I do not know', 'context': 'Leuven is not in my memory'}", ["Leuven"], 1, 0),
        # whole words
        ("{'answer': 'Leuvensesteenweg', 'context': ''}", ["Leuven"], 0, 0),
        ("{'answer': '1.3', 'context': ''}", ["3"], 0, 0),
        ("", ["Leuven"], 0, 0),
        ("...", ["Leuven"], 0, 0),
        # reasoning is not part of the reply
        ("<think>Leuven?</think>{'answer': 'Ghent', 'context': ''}", ["Leuven"], 0, 0),
        # a regular expression in a gold answer is text
        ("anything", [".+"], 0, 0),
    ],
)  # fmt: skip
def test_both_scores(reply: str, gold: list[str], official: float, robust: float) -> None:
    (score,) = BFCL_MEMORY_KV.score([attempt_of(reply, *gold)], None)
    assert (score.official, score.robust) == (official, robust)


def test_reasoning_that_never_ended_is_no_answer() -> None:
    (score,) = BFCL_MEMORY_KV.score([attempt_of("It may be Leuven", "Leuven", finish=Finish.TRUNCATED)], None)
    assert (score.robust, score.answered) == (0.0, False)


def test_a_judge_reads_other_words_and_never_nothing() -> None:
    judge = ScriptedChat(['{"verdict": "correct"}'] * 3)
    attempts = [
        attempt_of("{'answer': 'the city of Leuven', 'context': ''}", "Leuven"),
        attempt_of("", "Leuven"),
        attempt_of("{'answer': 'I do not know', 'context': ''}", "Leuven"),
    ]
    scores = BFCL_MEMORY_KV.score(attempts, Judge(judge, alarm_share=1.0))
    assert [score.answered for score in scores] == [True, False, False]
    assert len(judge.requests) == 1
    assert [score.robust for score in scores][1:] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("{'answer': 'a', 'context': 'b'} {'answer': 'c', 'context': 'd'}", "c"),
        ("{'answer': \"it's\", 'context': 'b'}", "it's"),
        ("{'answer': 'open", "'open"),
        ("{'answer': '', 'context': ''}", "{'answer': '', 'context': ''}"),
        ("{'answer': 'I cannot answer this question.', 'context': 'x'}", None),
        ("{'answer': 'x'}", "x"),
    ],
)
def test_the_stated_answer(reply: str, answer: str | None) -> None:
    assert stated_answer(reply, Finish.FINISHED) == answer


@settings(max_examples=25)
@given(st.text() | st.text(alphabet="{}'\"answercontext:, \\"), st.sampled_from(Finish))
def test_any_reply_is_scored(reply: str, finish: Finish) -> None:
    (score,) = BFCL_MEMORY_KV.score([attempt_of(reply, "Leuven", "3", finish=finish)], None)
    assert score.official in (0.0, 1.0)
    assert score.robust in (0.0, 1.0)
