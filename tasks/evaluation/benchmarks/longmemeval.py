"""LongMemEval: 500 questions about a user's earlier sessions with a chat assistant (arXiv 2410.10813).

Followed: github.com/xiaowu0162/LongMemEval at 9e0b455, `src/generation/run_generation.py` (the whole history as JSON,
sessions by date, "step by step", as its README recommends) and `src/evaluation/evaluate_qa.py`.

The official scorer asks GPT-4o whether the reply is right, with a prompt per type of question: for time, being off by
one is forgiven; for an update, the earlier state may be told as well; for preferences, there is a rubric; and where the
id has "_abs", the reply must say that this was never told. It takes any "yes" in the judge's reply ("No, yesterday").
Here the same rules are put in other words, around fenced texts, and a verdict is parsed or there is none
(tasks/rewards/judging/purposes.py). The robust score is the larger of equality by rule and the judge.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tasks.artifacts import sha256_of
from tasks.errors import InputError
from tasks.evaluation.benchmarks.base import BETWEEN_SUBSETS, Attempt, Score, Task
from tasks.evaluation.benchmarks.files import Row, files, rows
from tasks.evaluation.benchmarks.stated import judged, shown
from tasks.records import AnswerKind, Verdict
from tasks.rewards.judge import Judge
from tasks.rewards.judging.purposes import MEMORY_ABSTENTION, Claim, long_mem_eval
from tasks.rewards.rules import Gold, check_many

FILES = "longmemeval_*.json"
PROMPT = (
    "I will give you several history chats between you and a user. Please answer the question based on the relevant "
    "chat history. Answer the question step by step: first extract all the relevant information, and then reason over "
    "the information to get the answer.\n\n\nHistory Chats:\n\n{history}\n\nCurrent Date: {date}\n"
    "Question: {question}\nAnswer (step by step):"
)
SESSION = "\n### Session {number}:\nSession Date: {date}\nSession Content:\n\n{turns}\n"
RELEASES: Mapping[str, str] = {  # SHA-256 of the files on the hub
    "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442": "S, cleaned (September 2025)",
    "9d79e5524794a2e6900a3aa9cb7d9152c5a3e8319c9a87c25494ba1eacee495f": "M, cleaned (September 2025)",
    "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c": "oracle (the same in both releases)",
    "08d8dad4be43ee2049a22ff5674eb86725d0ce5ff434cde2627e5e8e7e117894": "S, first release (2024), not cleaned",
    "fb5413e3b077c62927daab794836991a2fcfa61ceacab57dc679fb02daaff2d9": "M, first release (2024), not cleaned",
}


class LongMemEvalTask(Task):
    """`asked` is the official question, `date` when it was asked; `question` says both. `kind` is its official type."""

    asked: str
    date: str
    kind: str


class LongMemEval:
    """The official JSON of one release (S, M or oracle). The table splits by type; abstention is counted in both."""

    name: ClassVar = "longmemeval"
    source: ClassVar = "xiaowu0162/longmemeval-cleaned@98d7416c24c778c2fee6e6f3006e7a073259d48f"

    def read(self, folder: Path) -> Iterator[LongMemEvalTask]:
        return map(_task, rows(folder, _file(folder).name))

    def prompt(self, task: LongMemEvalTask) -> str:
        return PROMPT.format(history=task.context, date=task.date, question=task.asked)

    def score(self, attempts: Sequence[Attempt[LongMemEvalTask]], judge: Judge | None) -> list[Score]:
        verdicts = judged([_claim(attempt) for attempt in attempts], judge)
        checks = check_many((attempt.reply, attempt.finish, _gold(attempt.task)) for attempt in attempts)
        return [
            Score(
                official=verdict,
                robust=1.0 if check.verdict is Verdict.CORRECT else verdict,
                answered=bool(shown(attempt)),
            )
            for attempt, verdict, check in zip(attempts, verdicts, checks, strict=True)
        ]


def release_of(folder: Path) -> str:
    """Which release the file in a folder is, by its content; a file of other content is named with its hash.

    Raises:
        InputError: there is not exactly one file.
    """
    path = _file(folder)
    digest = sha256_of(path)
    return RELEASES.get(digest, f"unknown: {path.name}, SHA-256 {digest}")


def _file(folder: Path) -> Path:
    first, *others = files(folder, FILES)
    if others:
        raise InputError(
            f"{folder} holds {first.name} and {others[0].name}; keep one release, for they share their ids"
        )
    return first


def _task(row: Row) -> LongMemEvalTask:
    name, kind = row.text("question_id"), row.text("question_type")
    abstains = long_mem_eval(name, kind) is MEMORY_ABSTENTION
    asked, date = row.text("question"), row.text("question_date")
    return LongMemEvalTask(
        id=name,
        context=_history(row),
        question=f"{asked} (asked on {date})",
        gold=(_answer(row),),
        subset=BETWEEN_SUBSETS.join((kind, "abstention")) if abstains else kind,
        asked=asked,
        date=date,
        kind=kind,
    )


def _history(row: Row) -> str:
    """All sessions by date. The marks of the turns that hold the answer are left out."""
    dates, sessions = row.texts("haystack_dates"), row.value("haystack_sessions")
    if not isinstance(sessions, list) or len(sessions) != len(dates):
        raise row.error(f"has {len(dates)} dates and not as many sessions")
    dated = [
        (date, _turns(row, index, session)) for index, (date, session) in enumerate(zip(dates, sessions, strict=True))
    ]
    dated.sort(key=lambda session: session[0])
    return "".join(
        SESSION.format(number=number, date=date, turns=turns) for number, (date, turns) in enumerate(dated, 1)
    )


def _turns(row: Row, index: int, session: object) -> str:
    turns = Row({"turns": session}, f"{row.place}, haystack_sessions[{index}]").rows("turns")
    return json.dumps([{"role": turn.text("role"), "content": turn.text("content")} for turn in turns])


def _answer(row: Row) -> str:
    """Some answers are numbers."""
    answer = row.value("answer")
    return str(answer) if isinstance(answer, int) and not isinstance(answer, bool) else row.text("answer")


def _claim(attempt: Attempt[LongMemEvalTask]) -> Claim | None:
    task, reply = attempt.task, shown(attempt)
    return Claim(task.question, task.gold[0], reply, long_mem_eval(task.id, task.kind)) if reply else None


def _gold(task: LongMemEvalTask) -> Gold:
    return Gold(task.gold, AnswerKind.FREE_TEXT, task.asked)


LONGMEMEVAL = LongMemEval()
