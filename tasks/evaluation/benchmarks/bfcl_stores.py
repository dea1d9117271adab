"""The memories of BFCL-V4 as pure state machines: a call and a state in, a state and the official reply out.

Limits, order of the checks and wording follow bfcl_eval/eval_checker/multi_turn_eval/func_source_code/memory_kv.py and
memory_rec_sum.py; calls are carried out as multi_turn_utils.py does, whose `eval` is a table here.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

from pydantic import Field

from tasks.evaluation.benchmarks.bfcl_calls import Call
from tasks.records import Record

Entries = Mapping[str, str]
Reply = Mapping[str, object]  # what a tool replies, before it becomes JSON
T = TypeVar("T")

LONGEST_SUMMARY = 10_000  # characters
_KEY = re.compile(r"^[a-z]+(_[a-z0-9]+)*$")
_FORBIDDEN = frozenset("kill exit quit remove unlink popen Popen run".split())


class Store(Protocol):
    """A memory. Its fields are its snapshot in the official form."""

    def shown(self) -> str:
        """What the system prompt shows of it."""
        ...

    def apply(self, name: str, arguments: Mapping[str, object]) -> tuple[Self, Reply]:
        """Carry out one call.

        Raises:
            Exception: whatever arguments that do not fit raise; its message is what the model is told.
        """
        ...


def execute(store: Store, call: Call) -> tuple[Store, str]:
    """The state after a call, and the text that the model gets back. Calls among the arguments go first."""
    try:
        after, reply = _evaluate(store, call)
    except Exception as error:  # a model's arguments raise anything; BFCL tells the model what, and goes on
        return store, f"Error during execution: {error}"
    return after, json.dumps(reply)


def _evaluate(store: Store, call: Call) -> tuple[Store, Reply]:
    arguments = dict(call.arguments)
    for name, value in call.arguments.items():
        if isinstance(value, Call):
            store, arguments[name] = _evaluate(store, value)
    return store.apply(call.name, arguments)


class KeyValueStore(Record):
    """Backend "kv": a core memory that is always shown and an archival one that is searched by its keys."""

    core_memory: Entries = Field(default_factory=dict)
    archival_memory: Entries = Field(default_factory=dict)

    def shown(self) -> str:
        """The core memory."""
        if not self.core_memory:
            return "There is no content in the core memory at this point."
        return json.dumps(dict(self.core_memory), indent=4)

    def apply(self, name: str, arguments: Mapping[str, object]) -> tuple[Self, Reply]:
        """See `Store`."""
        tool = _found(KEY_VALUE_TOOLS, name)
        entries, reply = _called(
            tool.act, "MemoryAPI_kv", name, (tool.shelf, getattr(self, tool.shelf.name)), arguments
        )
        return self.model_copy(update={tool.shelf.name: entries}), reply


class SummaryStore(Record):
    """Backend "rec_sum": one text that the model rewrites, always shown whole."""

    memory: str = ""

    def shown(self) -> str:
        """All of it."""
        return self.memory or "There is no content in the memory at this point."

    def apply(self, name: str, arguments: Mapping[str, object]) -> tuple[Self, Reply]:
        """See `Store`."""
        act = _found(SUMMARY_TOOLS, name)
        memory, reply = _called(act, "MemoryAPI_rec_sum", name, (self.memory,), arguments)
        return self.model_copy(update={"memory": memory}), reply


@dataclass(frozen=True)
class Shelf:
    """One of the two memories of a key-value store: its field, limits (entries, characters of one) and words."""

    name: str
    entries: int
    characters: int
    title: str
    added: str
    cleared: str


CORE = Shelf("core_memory", 7, 300, "Core memory", "Key-value pair added.", "Short term memory cleared.")
ARCHIVAL = Shelf("archival_memory", 50, 2000, "Long term memory", "Key added.", "Long term memory cleared.")


def _add(shelf: Shelf, entries: Entries, /, key: object, value: object) -> tuple[Entries, Reply]:
    key, value = str(key), str(value)
    if len(entries) >= shelf.entries:
        return entries, {"error": f"{shelf.title} is full. Please clear some entries."}
    if len(value) > shelf.characters:
        return entries, _too_long(shelf)
    if not _KEY.match(key):
        return entries, {"error": "Key must be in snake_case format and cannot contain spaces."}
    if key in entries:
        return entries, {"error": "Key name must be unique."}
    return {**entries, key: value}, {"status": shelf.added}


def _remove(_: Shelf, entries: Entries, /, key: str) -> tuple[Entries, Reply]:
    if key not in entries:
        return entries, _not_found()
    return {name: value for name, value in entries.items() if name != key}, {"status": "Key removed."}


def _replace(shelf: Shelf, entries: Entries, /, key: object, value: object) -> tuple[Entries, Reply]:
    key, value = str(key), str(value)
    if key not in entries:
        return entries, _not_found()
    if len(value) > shelf.characters:
        return entries, _too_long(shelf)
    return {**entries, key: value}, {"status": "Key replaced."}


def _clear(shelf: Shelf, _: Entries, /) -> tuple[Entries, Reply]:
    return {}, {"status": shelf.cleared}


def _retrieve(_: Shelf, entries: Entries, /, key: str) -> tuple[Entries, Reply]:
    return entries, {"value": entries[key]} if key in entries else _not_found()


def _retrieve_all(_: Shelf, entries: Entries, /) -> tuple[Entries, Reply]:
    return entries, entries


def _list_keys(_: Shelf, entries: Entries, /) -> tuple[Entries, Reply]:
    return entries, {"keys": list(entries)}


def _key_search(_: Shelf, entries: Entries, /, query: str, k: int = 5) -> tuple[Entries, Reply]:
    keys = list(entries)
    ranked = sorted(zip(bm25_plus(query, keys), keys, strict=True), key=lambda pair: pair[0], reverse=True)
    return entries, {"ranked_results": ranked[:k]}


def _too_long(shelf: Shelf) -> Reply:
    limit = f"Please shorten the entry to less than {shelf.characters} characters."
    return {"error": f"Entry is too long. {limit}"}


def _not_found() -> Reply:
    return {"error": "Key not found."}


def _append(memory: str, /, text: object) -> tuple[str, Reply]:
    return _written(memory, memory + str(text), "appending", "appended")


def _update(memory: str, /, text: object) -> tuple[str, Reply]:
    return _written(memory, str(text), "updating", "updated")


def _clear_all(_: str, /) -> tuple[str, Reply]:
    return "", {"status": "Short term memory cleared."}


def _replace_text(memory: str, /, old_text: object, new_text: object) -> tuple[str, Reply]:
    """The official code limits the new text only: "" replaced by 10,000 characters would grow it 10,000-fold a call."""
    old, new = str(old_text), str(new_text)
    if old not in memory:
        return memory, {"error": f"Text '{old}' not found in memory."}
    length = len(memory) + memory.count(old) * (len(new) - len(old))
    if max(length, len(new)) > LONGEST_SUMMARY:
        return memory, _summary_too_long("replacing")
    return memory.replace(old, new), {"status": "Memory updated."}


def _retrieve_text(memory: str, /) -> tuple[str, Reply]:
    return memory, {"memory_content": memory} if memory else {"error": "Memory is empty."}


def _written(before: str, after: str, doing: str, done: str) -> tuple[str, Reply]:
    if len(after) > LONGEST_SUMMARY:
        return before, _summary_too_long(doing)
    return after, {"status": f"Memory {done}."}


def _summary_too_long(doing: str) -> Reply:
    limit = f"Please shorten the entry to less than {LONGEST_SUMMARY} characters."
    return {"error": f"Entry will be too long after {doing}. {limit}"}


def bm25_plus(query: str, texts: Sequence[str]) -> list[float]:
    """BM25+ of each text for a query, words split at spaces and "_" (rank_bm25's BM25Plus: k1 1.5, b 0.75, δ 1).

    Every text gets idf·δ for a word that any text has: the score ranks, and does not say that a text matches.

    Raises:
        ZeroDivisionError: there are no texts. BFCL tells the model so, in Python's words.
    """
    words = [_words(text) for text in texts]
    mean = sum(map(len, words)) / len(words)
    counts = [Counter(each) for each in words]
    scores = [0.0] * len(texts)
    for word in _words(query):
        holding = sum(word in count for count in counts)
        idf = math.log((len(texts) + 1) / holding) if holding else 0.0
        for index, count in enumerate(counts):
            saturation = 1.5 * (1 - 0.75 + 0.75 * len(words[index]) / mean) + count[word]
            scores[index] += idf * (1 + count[word] * 2.5 / saturation)
    return scores


def _words(text: str) -> list[str]:
    return text.replace("_", " ").lower().split()


@dataclass(frozen=True)
class Tool:
    """What a function of the key-value store does, and to which memory."""

    shelf: Shelf
    act: Callable[..., tuple[Entries, Reply]]


_ACTS: Mapping[str, Callable[..., tuple[Entries, Reply]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "clear": _clear,
    "retrieve": _retrieve,
    "list_keys": _list_keys,
    "key_search": _key_search,
}
KEY_VALUE_TOOLS: Mapping[str, Tool] = {
    **{f"{shelf.name}_{name}": Tool(shelf, act) for shelf in (CORE, ARCHIVAL) for name, act in _ACTS.items()},
    "core_memory_retrieve_all": Tool(CORE, _retrieve_all),
}
SUMMARY_TOOLS: Mapping[str, Callable[..., tuple[str, Reply]]] = {
    "memory_append": _append,
    "memory_update": _update,
    "memory_clear": _clear_all,
    "memory_replace": _replace_text,
    "memory_retrieve": _retrieve_text,
}


def _found(tools: Mapping[str, T], name: str) -> T:
    """The tool of a name, or the error that BFCL's `eval` gives."""
    if name in tools:
        return tools[name]
    if name in _FORBIDDEN:
        raise LookupError(f"Function call {name} is not allowed.")
    raise LookupError(f"name '{name.partition('.')[0]}' is not defined")


def _called(
    act: Callable[..., tuple[T, Reply]],
    owner: str,
    name: str,
    state: tuple[object, ...],
    arguments: Mapping[str, object],
) -> tuple[T, Reply]:
    """Call by keywords. Python's words about arguments that do not fit name the official class and function."""
    try:
        return act(*state, **arguments)
    except TypeError as error:
        raise TypeError(str(error).replace(f"{act.__name__}()", f"{owner}.{name}()", 1)) from error
