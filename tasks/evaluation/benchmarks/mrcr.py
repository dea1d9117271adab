"""OpenAI MRCR: of several alike pieces of writing in a long conversation, give the n-th again, behind a random prefix.

Official: the data set's card (openai/mrcr on the hub), which holds `grade` and the bins. A revision before
5 December 2025 has too many needles in a tenth of its rows and wrong answers in a twentieth; its files lie elsewhere
(2needle.parquet) and are not found.
"""

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Literal

from tasks.evaluation.benchmarks.base import BETWEEN_SUBSETS, Attempt, Score, Task
from tasks.evaluation.benchmarks.conversation import Message
from tasks.evaluation.benchmarks.files import Row, rows
from tasks.rewards.judge import Judge

EDGES = tuple(4096 * 2**power for power in range(9))  # of the bins, in tokens of o200k_base
CHARACTERS_PER_TOKEN = (4.2, 5.2)  # the official rows lie between 4.3 and 5.0
USUAL_CHARACTERS_PER_TOKEN = 4.8
LONGEST_REPLY = 10_000  # characters of a reply that are compared, or LONGER times the answer's if these are more
LONGER = 4

Speaker = Literal["user", "assistant"]
_NAMES: Mapping[Speaker, str] = {"user": "User", "assistant": "Assistant"}
_CLOSING = str.maketrans("“‘«", "”’»")
_DECORATION = re.compile(r"[\s\"'“”‘’«»`*_>#]*")
_WORD = re.compile(r"^\s+|\S+\s*")
_Count = Callable[[str], int]


class MrcrTask(Task):
    """A conversation and the ask that ends it. `prefix` must begin the reply, as it begins the gold answer.

    `spans` has who speaks and where what is said stands in `context`, turn by turn.
    """

    prefix: str
    spans: tuple[tuple[Speaker, int, int], ...]


class Mrcr:
    """MRCR with 2, 4 and 8 needles, from the official parquet files (2needle/*.parquet and so on).

    OpenAI sends the turns of a chat (`turns`). The memory agent and middle truncation know one text: theirs is written
    as the worked examples in the data are ("User: …", `prompt`).
    """

    name: ClassVar = "mrcr"
    source: ClassVar = "openai/mrcr@f4c69fae7cf81f7ca26b9fee34b392a50f6b8a1d"

    def read(self, folder: Path) -> Iterator[MrcrTask]:
        seen: Counter[int] = Counter()
        for row in rows(folder, "*needle/*.parquet"):
            needles = int(row.number("n_needles"))
            yield _task(row, needles, seen[needles])
            seen[needles] += 1

    def turns(self, task: MrcrTask) -> list[Message]:
        """The official prompt: the conversation, which the user ends with the ask."""
        said = [Message(speaker, task.context[start:end]) for speaker, start, end in task.spans]
        return [*said, Message("user", task.question)]

    def prompt(self, task: MrcrTask) -> str:
        return f"{task.context}\nUser: {task.question}"

    def score(self, attempts: Sequence[Attempt[MrcrTask]], judge: Judge | None) -> list[Score]:  # noqa: ARG002  no judge needed
        return [_score(attempt) for attempt in attempts]


def grade(reply: str, answer: str, prefix: str) -> float:
    """The official score in 0..1: 0 without the prefix, else difflib's ratio of what follows it in both.

    difflib's settings are the official ones: from 200 characters on, characters that make up more than a hundredth of
    the answer begin no match. Its time is about quadratic, so of a reply longer than `LONGEST_REPLY` and `LONGER`
    times the answer only the beginning is compared, while all of it counts as length: up to there the score is exact,
    beyond it is at most 2 / (1 + LONGER) = 0.4, as the official one.
    """
    if not reply.startswith(prefix):
        return 0.0
    return _ratio(reply.removeprefix(prefix), answer.removeprefix(prefix), SequenceMatcher(autojunk=True), list)


def grade_robust(reply: str, answer: str, prefix: str) -> float:
    """As `grade`, but what only decorates a reply before its prefix (blanks, quotes, Markdown) is forgiven, and the
    official ratio gives way to that of whole words where this is higher: in it no word is too frequent to match.

    Never below the official score; equal to it where the gate is passed and frequent characters do no harm.
    """
    bare = _undecorated(reply, prefix)
    if bare is None:
        return 0.0
    answer = answer.removeprefix(prefix)
    words = _ratio(bare, answer, SequenceMatcher(autojunk=False), _WORD.findall)
    return max(words, *(grade(text, prefix + answer, prefix) for text in {reply, prefix + bare}))


def bin_of(tokens: float) -> str:
    """The official bin of prompt and answer: [4096, 8192], (8192, 16384], …, (524288, 1048576]."""
    index = bisect_left(EDGES, tokens, lo=1)
    if tokens < EDGES[0]:
        return f"under {_short(EDGES[0])}"
    return f"over {_short(EDGES[-1])}" if index == len(EDGES) else f"{_short(EDGES[index - 1])}-{_short(EDGES[index])}"


def bin_of_texts(texts: Sequence[str], count: _Count | None) -> str:
    """The bin of the contents of all messages and the answer.

    Characters settle most; where they leave two bins, `count` (tokens of a text by o200k_base) decides. Without it the
    usual rate does, and a "~" before the bin says so.
    """
    characters = sum(map(len, texts))
    fewest, most = sorted(characters / rate for rate in CHARACTERS_PER_TOKEN)
    if bin_of(fewest) == bin_of(most):
        return bin_of(fewest)
    if count is None:
        return f"~{bin_of(characters / USUAL_CHARACTERS_PER_TOKEN)}"
    return bin_of(sum(map(count, texts)))


def _task(row: Row, needles: int, number: int) -> MrcrTask:
    *before, (_, ask) = _messages(row)
    prefix, answer = row.text("random_string_to_prepend"), row.text("answer")
    if not prefix.isalnum() or not answer.startswith(prefix):
        raise row.error(f"has an answer that does not begin with its prefix {prefix!r}")
    context, spans = _transcript(before)
    tokens = bin_of_texts([*(content for _, content in before), ask, answer], _o200k())
    return MrcrTask(
        id=f"{needles}needle-{number}",
        context=context,
        question=ask,
        gold=(answer,),
        subset=BETWEEN_SUBSETS.join((f"{needles} needles", tokens, f"{needles} needles, {tokens}")),
        prefix=prefix,
        spans=spans,
    )


def _messages(row: Row) -> list[tuple[Speaker, str]]:
    """Who says what; the last one asks."""
    try:
        messages = Row({"prompt": json.loads(row.text("prompt"))}, row.place).rows("prompt")
    except json.JSONDecodeError as error:
        raise row.error(f"has a prompt that is no JSON ({error})") from error
    said = [(_speaker(message), message.text("content")) for message in messages]
    if not said or said[-1][0] != "user":
        raise row.error("has a prompt that does not end with the user")
    return said


def _speaker(message: Row) -> Speaker:
    role = message.text("role")
    for speaker in _NAMES:
        if role == speaker:
            return speaker
    raise message.error(f"has the role {role!r}; known: {', '.join(_NAMES)}")


def _transcript(said: Sequence[tuple[Speaker, str]]) -> tuple[str, tuple[tuple[Speaker, int, int], ...]]:
    """The conversation as one text, a line break between turns, and where each turn's words stand in it."""
    spans: list[tuple[Speaker, int, int]] = []
    start = 0
    for speaker, content in said:
        start += len(_NAMES[speaker]) + 2
        spans.append((speaker, start, start + len(content)))
        start += len(content) + 1
    return "\n".join(f"{_NAMES[speaker]}: {content}" for speaker, content in said), tuple(spans)


@cache
def _o200k() -> _Count | None:
    """tiktoken's o200k_base, if it is installed and its vocabulary can be had."""
    if find_spec("tiktoken") is None:
        return None
    try:
        encoding = import_module("tiktoken").get_encoding("o200k_base")
    except OSError:  # no network, and no copy in TIKTOKEN_CACHE_DIR
        return None
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def _score(attempt: Attempt[MrcrTask]) -> Score:
    """`answered` is the gate: a share of unanswered replies is that of missed prefixes."""
    task, reply = attempt.task, _after_reasoning(attempt.reply)
    gold = task.gold[0]
    return Score(
        official=grade(reply, gold, task.prefix),
        robust=grade_robust(reply, gold, task.prefix),
        answered=reply.startswith(task.prefix),
    )


def _after_reasoning(reply: str) -> str:
    """The reply without its reasoning, and without the line breaks that chat templates put behind it; else as it is.

    Reasoning that was never closed leaves nothing.
    """
    _, closed, rest = reply.rpartition("</think>")
    return (rest.lstrip("\n") if closed else rest).partition("<think>")[0]


def _undecorated(reply: str, prefix: str) -> str | None:
    """What follows the prefix, without the marks that enclose prefix or reply; None if the prefix comes too late."""
    decoration = _DECORATION.match(reply)
    before = decoration[0] if decoration else ""
    if not reply.startswith(prefix, len(before)):
        return None
    marks = "".join(before.split()).translate(_CLOSING)[::-1]
    text = reply[len(before) + len(prefix) :].removeprefix(marks)
    return text.rstrip().removesuffix(marks).rstrip() if marks else text


def _ratio(reply: str, answer: str, matcher: "SequenceMatcher[str]", units_of: Callable[[str], list[str]]) -> float:
    """Twice the characters in matching units, over all characters; 1 for two empty texts."""
    length = len(reply) + len(answer)
    units = units_of(reply[: max(LONGEST_REPLY, LONGER * len(answer))])
    matcher.set_seqs(units, units_of(answer))
    same = sum(len(unit) for start, _, size in matcher.get_matching_blocks() for unit in units[start : start + size])
    return 2 * same / length if length else 1.0


def _short(tokens: int) -> str:
    return f"{tokens // 2**20}M" if tokens >= 2**20 else f"{tokens // 2**10}K"


MRCR = Mrcr()
