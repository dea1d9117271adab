"""BFCL's memories: official limits and words, and states that only a successful call changes."""

import json
import math
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tasks.evaluation.benchmarks.bfcl_calls import Call, parse_calls
from tasks.evaluation.benchmarks.bfcl_stores import (
    ARCHIVAL,
    CORE,
    KEY_VALUE_TOOLS,
    LONGEST_SUMMARY,
    SUMMARY_TOOLS,
    KeyValueStore,
    Store,
    SummaryStore,
    bm25_plus,
    execute,
)

FAILED = "Error during execution:"
MISSING = "missing 1 required positional argument:"
UNKNOWN = "got an unexpected keyword argument"
BAD_KEY = {"error": "Key must be in snake_case format and cannot contain spaces."}
FULL = {f"key_{index}": "v" for index in range(7)}


def too_long(doing: str) -> dict[str, str]:
    limit = "Please shorten the entry to less than 10000 characters."
    return {"error": f"Entry will be too long after {doing}. {limit}"}


def said(store: Store, call: str) -> object:
    (parsed,) = parse_calls(call)
    text = execute(store, parsed)[1]
    return json.loads(text) if text.startswith("{") else text


def after(store: Store, *calls: str) -> Store:
    for call in calls:
        (parsed,) = parse_calls(call)
        store, _ = execute(store, parsed)
    return store


@pytest.mark.parametrize(
    ("store", "call", "reply"),
    [
        ({}, "core_memory_add(key='city', value='Leuven')", {"status": "Key-value pair added."}),
        ({}, "archival_memory_add(key='city', value='Leuven')", {"status": "Key added."}),
        ({}, "core_memory_add(key='My City', value='')", BAD_KEY),
        ({}, "core_memory_add(key='2nd', value='')", BAD_KEY),
        (FULL, "core_memory_add(key='new', value='')", {"error": "Core memory is full. Please clear some entries."}),
        ({"a": "x"}, "core_memory_add(key='a', value='y')", {"error": "Key name must be unique."}),
        ({"a": "x"}, "core_memory_retrieve(key='a')", {"value": "x"}),
        ({}, "core_memory_retrieve(key='a')", {"error": "Key not found."}),
        ({"a": "x"}, "core_memory_retrieve_all()", {"a": "x"}),
        ({"b": "x", "a": "y"}, "core_memory_list_keys()", {"keys": ["b", "a"]}),
        ({"a": "x"}, "core_memory_remove(key='a')", {"status": "Key removed."}),
        ({"a": "x"}, "core_memory_replace(key='a', value='y')", {"status": "Key replaced."}),
        ({"a": "x"}, "core_memory_clear()", {"status": "Short term memory cleared."}),
        ({}, "archival_memory_clear()", {"status": "Long term memory cleared."}),
        ({}, "core_memory_key_search(query='a')", "Error during execution: division by zero"),
        ({}, "core_memory_add(key='a')", f"{FAILED} MemoryAPI_kv.core_memory_add() {MISSING} 'value'"),
        ({}, "core_memory_clear(all=True)", f"{FAILED} MemoryAPI_kv.core_memory_clear() {UNKNOWN} 'all'"),
        ({}, "core_memory_remove(key=[1])", "Error during execution: unhashable type: 'list'"),
        ({}, "save(key='a')", "Error during execution: name 'save' is not defined"),
        ({}, "memory.core_memory_clear()", "Error during execution: name 'memory' is not defined"),
        ({}, "remove(key='a')", "Error during execution: Function call remove is not allowed."),
        ({}, "archival_memory_retrieve_all()", f"{FAILED} name 'archival_memory_retrieve_all' is not defined"),
    ],
)  # fmt: skip
def test_official_words(store: Mapping[str, str], call: str, reply: object) -> None:
    assert said(KeyValueStore(core_memory=store), call) == reply


@pytest.mark.parametrize(("shelf", "limit"), [("core", 300), ("archival", 2000)])
def test_the_limit_of_an_entry(shelf: str, limit: int) -> None:
    error = {"error": f"Entry is too long. Please shorten the entry to less than {limit} characters."}
    assert "status" in str(said(KeyValueStore(), f"{shelf}_memory_add(key='a', value={'x' * limit!r})"))
    assert said(KeyValueStore(), f"{shelf}_memory_add(key='a', value={'x' * (limit + 1)!r})") == error
    store = after(KeyValueStore(), f"{shelf}_memory_add(key='a', value='x')")
    assert said(store, f"{shelf}_memory_replace(key='a', value={'x' * (limit + 1)!r})") == error


def test_the_archive_holds_fifty() -> None:
    store = after(KeyValueStore(), *(f"archival_memory_add(key='k_{index}', value='v')" for index in range(51)))
    assert isinstance(store, KeyValueStore)
    assert len(store.archival_memory) == 50
    assert said(store, "archival_memory_add(key='z', value='v')") == {
        "error": "Long term memory is full. Please clear some entries."
    }


def test_what_the_system_prompt_shows() -> None:
    assert KeyValueStore(archival_memory={"a": "x"}).shown() == "There is no content in the core memory at this point."
    assert KeyValueStore(core_memory={"a": "x"}).shown() == '{\n    "a": "x"\n}'
    assert SummaryStore().shown() == "There is no content in the memory at this point."
    assert SummaryStore(memory="Lives in Leuven.").shown() == "Lives in Leuven."


def test_calls_among_the_arguments_go_first() -> None:
    store = after(
        KeyValueStore(core_memory={"a": "x"}), "archival_memory_add(key='b', value=core_memory_retrieve(key='a'))"
    )
    assert store == KeyValueStore(core_memory={"a": "x"}, archival_memory={"b": "{'value': 'x'}"})


def test_bm25_by_hand() -> None:
    # two texts of 2 and 1 words, mean 1.5; "home" is in one of them: idf = ln(3 / 1)
    scores = bm25_plus("Home", ["home_town", "job"])
    saturation = 1.5 * (0.25 + 0.75 * 2 / 1.5) + 1
    assert scores == pytest.approx([math.log(3) * (1 + 2.5 / saturation), math.log(3)])
    assert bm25_plus("nothing", ["home_town", "job"]) == [0.0, 0.0]
    assert bm25_plus("", ["a"]) == [0.0]


def test_search_ranks_and_cuts() -> None:
    store = KeyValueStore(core_memory=dict.fromkeys(["job", "home_town", "home_phone", "dog", "cat", "fish"], "v"))
    found = said(store, "core_memory_key_search(query='home')")
    assert isinstance(found, dict)
    keys = [key for _, key in found["ranked_results"]]
    assert keys == ["home_town", "home_phone", "job", "dog", "cat"]  # equals stay in order, five are shown
    two = said(store, "core_memory_key_search(query='home', k=2)")
    assert isinstance(two, dict)
    assert len(two["ranked_results"]) == 2


@pytest.mark.parametrize(
    ("memory", "call", "reply"),
    [
        ("", "memory_append(text='a')", {"status": "Memory appended."}),
        ("x" * 9_999, "memory_append(text='a')", {"status": "Memory appended."}),
        ("x" * 10_000, "memory_append(text='a')", too_long("appending")),
        ("", f"memory_update(text={'x' * 10_001!r})", too_long("updating")),
        ("a", "memory_update(text='b')", {"status": "Memory updated."}),
        ("a", "memory_replace(old_text='z', new_text='b')", {"error": "Text 'z' not found in memory."}),
        ("a", "memory_replace(old_text='a', new_text='b')", {"status": "Memory updated."}),
        ("x" * 5_000, "memory_replace(old_text='x', new_text='yyy')", too_long("replacing")),
        ("x" * 5_000, f"memory_replace(old_text='', new_text={'y' * 9_999!r})", too_long("replacing")),
        ("a", "memory_clear()", {"status": "Short term memory cleared."}),
        ("a", "memory_retrieve()", {"memory_content": "a"}),
        ("", "memory_retrieve()", {"error": "Memory is empty."}),
        ("", "memory_append()", f"{FAILED} MemoryAPI_rec_sum.memory_append() {MISSING} 'text'"),
    ],
)  # fmt: skip
def test_the_summary_in_official_words(memory: str, call: str, reply: object) -> None:
    assert said(SummaryStore(memory=memory), call) == reply


WORDS = st.sampled_from(["a", "b", "c", "d_1", "Bad Key", "a" * 301, "b" * 2001, ""])
ARGUMENTS = st.dictionaries(
    st.sampled_from(["key", "value", "query", "k", "text", "old_text", "new_text", "odd"]),
    WORDS | st.integers(-2, 9) | st.none() | st.lists(WORDS, max_size=2),
    max_size=3,
)


class KeyValueMachine(RuleBasedStateMachine):
    """Any calls in any order: the limits hold, keys stay valid, errors change nothing, a snapshot is the state."""

    def __init__(self) -> None:
        super().__init__()
        self.store: Store = KeyValueStore()

    @rule(tool=st.sampled_from(sorted(KEY_VALUE_TOOLS)), key=WORDS, value=WORDS)
    def well_formed(self, tool: str, key: str, value: str) -> None:
        needed = {"add": {"key": key, "value": value}, "replace": {"key": key, "value": value}}
        lookups = {"remove": {"key": key}, "retrieve": {"key": key}, "key_search": {"query": key}}
        self.call(Call(tool, {**needed, **lookups}.get(tool.partition("memory_")[2], {})))

    @rule(tool=st.sampled_from([*sorted(KEY_VALUE_TOOLS), "odd", "remove"]), arguments=ARGUMENTS)
    def anything(self, tool: str, arguments: Mapping[str, object]) -> None:
        self.call(Call(tool, arguments))

    def call(self, call: Call) -> None:
        before = self.store.model_dump()  # type: ignore[attr-defined]
        old = self.store
        self.store, reply = execute(old, call)
        assert old.model_dump() == before  # type: ignore[attr-defined]
        if "error" in reply or reply.startswith("Error"):
            assert self.store == old

    @invariant()
    def limits_hold(self) -> None:
        assert isinstance(self.store, KeyValueStore)
        for shelf, entries in ((CORE, self.store.core_memory), (ARCHIVAL, self.store.archival_memory)):
            assert len(entries) <= shelf.entries
            assert all(len(value) <= shelf.characters for value in entries.values())
            assert "Bad Key" not in entries

    @invariant()
    def a_snapshot_is_the_state(self) -> None:
        assert isinstance(self.store, KeyValueStore)
        assert KeyValueStore.model_validate_json(self.store.model_dump_json()) == self.store
        assert set(self.store.model_dump()) == {"core_memory", "archival_memory"}  # the official file's fields


KeyValueMachine.TestCase.settings = settings(max_examples=15, stateful_step_count=40)
TestKeyValueMachine = KeyValueMachine.TestCase


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(sorted(SUMMARY_TOOLS)), ARGUMENTS), max_size=8))
def test_the_summary_never_outgrows_its_limit(calls: list[tuple[str, Mapping[str, object]]]) -> None:
    store: Store = SummaryStore(memory="a" * (LONGEST_SUMMARY - 5))
    for name, arguments in calls:
        store, _ = execute(store, Call(name, arguments))
        assert isinstance(store, SummaryStore)
        assert len(store.memory) <= LONGEST_SUMMARY
