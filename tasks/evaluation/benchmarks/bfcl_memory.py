"""BFCL-V4's memory category: conversations fill a memory by function calls, then questions are answered from it.

The sessions of a scenario follow one another and hand on their memory; each question starts from the last one's. The
folder is the official bfcl_eval/data. Models are prompted for calls in words (the official "prompting" mode), since not
every chat template knows tools.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import TypeAdapter, ValidationError

from tasks.evaluation.benchmarks.base import Attempt, Score, Task
from tasks.evaluation.benchmarks.bfcl_calls import parse_calls
from tasks.evaluation.benchmarks.bfcl_stores import (
    KEY_VALUE_TOOLS,
    SUMMARY_TOOLS,
    KeyValueStore,
    Store,
    SummaryStore,
    execute,
)
from tasks.evaluation.benchmarks.bfcl_wording import (
    ANSWERING,
    CALLING,
    CORE_AND_ARCHIVAL,
    REFUSALS,
    SCENARIOS,
    TOOL_HINT,
    UNIFIED,
)
from tasks.evaluation.benchmarks.conversation import Message
from tasks.evaluation.benchmarks.files import Row, rows
from tasks.evaluation.benchmarks.interactive import Dialogue, Held, Model, Played, hold
from tasks.generation.base import Completion
from tasks.records import AnswerKind, Finish, Record, Verdict
from tasks.rewards.extraction import extract_answer, visible
from tasks.rewards.judge import Judge
from tasks.rewards.judging.verdicts import Attempt as Stated
from tasks.rewards.judging.verdicts import verdicts_of
from tasks.rewards.normalise import normalise
from tasks.rewards.numbers import parse_number
from tasks.rewards.rules import Gold

FILE = "BFCL_v4_memory.json"
STEPS = 21  # replies with calls in one turn: the official count is compared with 20 after a step is done
_PUNCTUATION = re.compile(r"[,./\-_*^()]")
_ANSWER = re.compile(r"""['"]answer['"]\s*:\s*""")
_CONTEXT = re.compile(r""",\s*['"]context['"]\s*:|}\s*\Z""")
_REFUSALS = frozenset(map(normalise, REFUSALS))


class Session(Record):
    """A conversation that the memory is to be filled from: what the user says, turn by turn."""

    id: str
    turns: tuple[str, ...]


class Said(Record):
    """A message of the official files: in this category they are all the user's, one a turn."""

    role: Literal["user"]
    content: str


_TURNS: TypeAdapter[tuple[tuple[Said], ...]] = TypeAdapter(tuple[tuple[Said], ...])


class MemoryTask(Task):
    """A question about the earlier sessions of a scenario, its `subset`. `tools` is their documentation as shown."""

    sessions: tuple[Session, ...]
    tools: str


@dataclass(frozen=True)
class Ending:
    """Where a conversation ended: its memory and last reply; None where it called on and on or outgrew the window."""

    store: Store
    reply: str | None
    finish: Finish


class BfclMemory:
    """The category on one memory backend. Of the official three, vectors are left out: they need a model of texts."""

    name: ClassVar[str]
    source: ClassVar[str] = "ShishirPatil/gorilla@6ea57973c7a6097fd7c5915698c54c17c5b1b6c8, bfcl_eval/data"
    backend: ClassVar[str]
    functions: ClassVar[Collection[str]]
    instruction: ClassVar[str]
    empty: ClassVar[Store]

    def read(self, folder: Path) -> Iterator[MemoryTask]:
        """Read questions, answers, sessions and the functions' documentation; see `base.Benchmark`."""
        tools = _tools(folder, self.backend, self.functions)
        sessions = {scenario: _sessions(folder, scenario) for scenario in SCENARIOS}
        answers = {row.text("id"): row.texts("ground_truth") for row in rows(folder / "possible_answer", FILE)}
        for row in rows(folder, FILE):
            yield _task(row, answers, sessions, tools)

    def play(self, tasks: Sequence[MemoryTask], model: Model, seed: int) -> list[Played[MemoryTask]]:
        """Fill one memory for each scenario, then answer all questions. Tokens are those of a question's own turn."""
        scenarios = {task.subset: task for task in tasks}
        filled = hold({name: self._fill(task) for name, task in scenarios.items()}, model, seed)
        asked = hold({task.id: self._ask(task, filled[task.subset].result) for task in tasks}, model, seed)
        return [_played(task, asked[task.id]) for task in tasks]

    def score(self, attempts: Sequence[Attempt[MemoryTask]], judge: Judge | None) -> list[Score]:
        """Official: any gold answer in the reply, in whole words. Robust: the stated answer is one of them."""
        answers = [stated_answer(attempt.reply, attempt.finish) for attempt in attempts]
        robust = _robust(attempts, answers, judge)
        return [
            Score(official=official_score(attempt), robust=next(robust), answered=answer is not None)
            for attempt, answer in zip(attempts, answers, strict=True)
        ]

    def _fill(self, task: MemoryTask) -> Dialogue[Store]:
        store = self.empty
        for session in task.sessions:
            ending = yield from _converse(store, self._system(task, store), session.turns)
            store = ending.store
        return store

    def _ask(self, task: MemoryTask, store: Store) -> Dialogue[Ending]:
        return (yield from _converse(store, f"{self._system(task, store)}\n\n{ANSWERING}", (task.question,)))

    def _system(self, task: MemoryTask, store: Store) -> str:
        memory = self.instruction.format(scenario=SCENARIOS[task.subset], memory=store.shown())
        return f"{CALLING.format(tools=task.tools)}\n\n{memory}"


class BfclMemoryKv(BfclMemory):
    """Memory of keys and values; the paper's "Memory-KV"."""

    name: ClassVar = "bfcl_memory_kv"
    backend: ClassVar = "kv"
    functions: ClassVar = KEY_VALUE_TOOLS
    instruction: ClassVar = CORE_AND_ARCHIVAL
    empty: ClassVar = KeyValueStore()


class BfclMemorySummary(BfclMemory):
    """Memory of one text."""

    name: ClassVar = "bfcl_memory_rec_sum"
    backend: ClassVar = "rec_sum"
    functions: ClassVar = SUMMARY_TOOLS
    instruction: ClassVar = UNIFIED
    empty: ClassVar = SummaryStore()


def _converse(store: Store, system: str, turns: Sequence[str]) -> Dialogue[Ending]:
    """A conversation that outgrows the window is lost with all it wrote, as an official run that fails loses it."""
    lost = Ending(store, None, Finish.TRUNCATED)
    ending: Ending | None = lost
    messages = [Message("system", system)]
    for turn in turns:
        messages.append(Message("user", turn))
        ending = yield from _turn(store, messages)
        if ending is None or ending.reply is None:
            break
        store = ending.store
    return ending or lost


def _turn(store: Store, messages: list[Message]) -> Dialogue[Ending | None]:
    """Calls, then a reply that is none; `messages` grow by both. None: the window was outgrown."""
    for _ in range(STEPS):
        completion = yield messages
        if completion is None:
            return None
        said = _assistant(completion)
        messages.append(said)
        calls = parse_calls(said.content)
        if not calls:
            return Ending(store, completion.text, completion.finish)
        for call in calls:
            store, result = execute(store, call)
            messages.append(Message("tool", result, call=str(call)))
    return Ending(store, None, Finish.TRUNCATED)


def official_score(attempt: Attempt[MemoryTask]) -> float:
    """As eval_checker/agentic_eval/agentic_checker.py: case and , . / - _ * ^ ( ) do not count, reasoning neither."""
    said = _standard(_after_reasoning(attempt.reply))
    return float(any(re.search(rf"\b{re.escape(_standard(gold))}\b", said) for gold in attempt.task.gold))


def stated_answer(reply: str, finish: Finish) -> str | None:
    """What a reply states: its "answer" field, else its answer as elsewhere, else all of it; None for a refusal."""
    shown = (visible(reply, finish) or "").strip()
    answer = _answer_field(shown) or extract_answer(reply, finish) or shown
    return answer if normalise(answer) and normalise(answer) not in _REFUSALS else None


def _answer_field(shown: str) -> str | None:
    """The last "answer" of the official form, of which models keep the quotes or not."""
    found = list(_ANSWER.finditer(shown))
    if not found:
        return None
    value = _CONTEXT.split(shown[found[-1].end() :], maxsplit=1)[0].strip()
    quoted = value[:1] in "'\"" and value[-1:] == value[:1] and len(value) > 1
    return value[1:-1] if quoted else value


def _robust(
    attempts: Sequence[Attempt[MemoryTask]], answers: Sequence[str | None], judge: Judge | None
) -> Iterator[float | None]:
    """The best verdict over the gold answers: 1 where one is correct, else None where one is unscored."""
    pairs = [
        Stated(_asked(attempt.task, gold), _boxed(answer or ""), Finish.FINISHED)
        for attempt, answer in zip(attempts, answers, strict=True)
        for gold in attempt.task.gold
    ]
    verdicts = verdicts_of(pairs, judge)
    for attempt in attempts:
        found = {next(verdicts) for _ in attempt.task.gold}
        yield 1.0 if Verdict.CORRECT in found else None if Verdict.UNSCORED in found else 0.0


def _asked(task: MemoryTask, gold: str) -> Gold:
    kind = AnswerKind.TEXT if parse_number(gold) is None else AnswerKind.NUMBER
    return Gold((gold,), kind, task.question)


def _boxed(answer: str) -> str:
    return "\\boxed{" + re.sub(r"[{}]", "", answer) + "}"


def _standard(text: str) -> str:
    return _PUNCTUATION.sub("", text).lower().replace("'", '"')


def _after_reasoning(text: str) -> str:
    return text.rpartition("</think>")[2].lstrip("\n")


def _assistant(completion: Completion) -> Message:
    """A reply as later prompts show it, its reasoning apart (model_handler/local_inference/qwen.py)."""
    thought, closed, content = completion.text.rpartition("</think>")
    reasoning = thought.rpartition("<think>")[2].strip("\n") if closed else ""
    return Message("assistant", content.lstrip("\n"), reasoning)


def _played(task: MemoryTask, held: Held[Ending]) -> Played[MemoryTask]:
    ending = held.result
    return Played(Attempt(task, ending.reply or "", ending.finish), held.input_tokens, held.output_tokens)


def _task(
    row: Row, answers: Mapping[str, tuple[str, ...]], sessions: Mapping[str, tuple[Session, ...]], tools: str
) -> MemoryTask:
    name, scenario = row.text("id"), row.text("scenario")
    if scenario not in sessions:
        raise row.error(f"has 'scenario' = {scenario!r}, which is none of {', '.join(sessions)}")
    if not answers.get(name):
        raise row.error(f"has 'id' = {name!r}, of which possible_answer/{FILE} has no answer")
    turns = _turns(row)
    if len(turns) != 1:
        raise row.error(f"has {len(turns)} turns, and a question has one")
    return MemoryTask(
        id=name,
        context="",
        question=turns[0],
        gold=answers[name],
        subset=scenario,
        sessions=sessions[scenario],
        tools=tools,
    )


def _sessions(folder: Path, scenario: str) -> tuple[Session, ...]:
    found = rows(folder / "memory_prereq_conversation", f"memory_{scenario}.json")
    return tuple(Session(id=row.text("id"), turns=_turns(row)) for row in found)


def _turns(row: Row) -> tuple[str, ...]:
    try:
        turns = _TURNS.validate_python(row.value("question"))
    except ValidationError:
        raise row.error("has a 'question' that is no list of turns, each one message of the user") from None
    return tuple(message.content for (message,) in turns)


def _tools(folder: Path, backend: str, functions: Collection[str]) -> str:
    """The functions' documentation as the prompt shows it (utils.py: _func_doc_language_specific_pre_processing)."""
    documented = []
    for row in rows(folder / "multi_turn_func_doc", f"memory_{backend}.json"):
        if row.text("name") not in functions:
            raise row.error(f"has 'name' = {row.text('name')!r}, a function that there is not")
        documented.append({**row.fields, "description": row.text("description") + TOOL_HINT})
    return json.dumps(documented, indent=4)


BFCL_MEMORY_KV = BfclMemoryKv()
BFCL_MEMORY_REC_SUM = BfclMemorySummary()
