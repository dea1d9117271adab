"""The memory agent on a scripted generator: chunking, turns, limits, damaged updates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import InputError
from tasks.generation.base import Completion
from tasks.generation.scripted import ScriptedGenerator
from tasks.memory.agent import Progress, chunk_documents, run_agent
from tasks.prompts import MemoryState, final_prompt, update_prompt
from tasks.records import Finish
from tests.memory.doubles import PARAMS, SAMPLING, RecordingGenerator, WordTokenizer, question, update


def run(generator, documents, questions=None, params=PARAMS, observe=lambda progress: None):
    questions = questions or [question() for _ in documents]
    return run_agent(generator, WordTokenizer(), documents, questions, params, SAMPLING, 5, observe)


def words(text: str) -> int:
    return len(text.split())


def test_chunks_end_at_sentence_borders():
    text = "One two three. Four five. Six seven eight nine. Ten!"
    assert chunk_documents([text], 5, words) == [
        "One two three. Four five. ",
        "Six seven eight nine. Ten!",
    ]


def test_table_rows_are_borders():
    assert chunk_documents(["| a | 1 |\n| b | 2 |\n| c | 3 |"], 10, words) == [
        "| a | 1 |\n| b | 2 |\n",
        "| c | 3 |",
    ]


def test_a_sentence_longer_than_a_chunk_is_cut_between_words():
    assert chunk_documents(["a b c d e. f g."], 3, words) == ["a b c ", "d e. ", "f g."]


def test_a_word_longer_than_a_chunk_is_cut_between_characters():
    assert "".join(chunk_documents(["abcdefghij"], 3, len)) == "abcdefghij"
    assert max(map(len, chunk_documents(["abcdefghij"], 3, len))) <= 3


@pytest.mark.parametrize("documents", [[], [""], [" \n ", ""]])
def test_no_content_gives_no_chunk(documents):
    assert chunk_documents(documents, 4, words) == []


@given(
    st.lists(st.text(alphabet="ab.!? \n\"')。\u00a0|é", max_size=60), max_size=4),
    st.integers(1, 12),
    st.sampled_from([words, len]),
)
def test_chunking_loses_nothing_and_keeps_the_limit(documents, limit, count):
    chunks = chunk_documents(documents, limit, count)
    assert "".join(chunks) == "\n".join(document for document in documents if document.strip())
    assert all(chunks)
    assert all(count(chunk) <= limit for chunk in chunks)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=20), st.integers(4, 9))
def test_whole_sentences_stay_whole(lengths, limit):
    sentences = [" ".join(["w"] * length) + ". " for length in lengths]
    borders = {sum(map(len, sentences[:index])) for index in range(len(sentences) + 1)}
    position = 0
    for chunk in chunk_documents(["".join(sentences)], limit, words):
        position += len(chunk)
        assert position in borders


def test_one_chunk_is_one_update_and_one_answer():
    generator = RecordingGenerator([update("Ann here", "done"), "The answer is Ann."])
    tokenizer = WordTokenizer()
    (result,) = run_agent(generator, tokenizer, [("a b c.",)], [question(options=("Ann", "Bob"))], PARAMS, SAMPLING, 5)
    assert result.reply == "The answer is Ann."
    assert result.finish is Finish.FINISHED
    assert result.states == (MemoryState("Ann here", "done"),)
    assert (result.unparsed, result.shortened) == (0, 0)
    assert [tokenizer.decode(prompt[1:-1]).split() for prompt in generator.prompts] == [
        update_prompt("a b c.", "who?", MemoryState().memory, MemoryState().plan).split(),
        final_prompt("Ann here", "who?", ("Ann", "Bob")).split(),
    ]


def test_options_reach_the_last_turn_only_and_the_plan_never_does():
    generator = ScriptedGenerator([update("m", "secretplan"), "x"])
    tokenizer = WordTokenizer()
    run_agent(generator, tokenizer, [("a.",)], [question(options=("opt1", "opt2"))], PARAMS, SAMPLING, 5)
    first, last = (tokenizer.decode(prompt) for prompt in generator.prompts)
    assert "opt1" not in first
    assert "opt1" in last
    assert "secretplan" not in last


def test_turns_hold_the_sampled_ids_not_a_rendering():
    odd = Completion((900, 901), update("m", "p"), Finish.FINISHED)
    cut = Completion((902,), "The ans", Finish.TRUNCATED)
    generator = ScriptedGenerator([odd, cut])
    (result,) = run(generator, [("a.",)])
    assert [turn.response_ids for turn in result.turns] == [(900, 901), (902,)]
    assert [turn.prompt_ids for turn in result.turns] == generator.prompts
    assert result.finish is Finish.TRUNCATED


@pytest.mark.parametrize("damaged", ["", "no tags", "<memory> x", "<memory> </memory> <plan> p </plan>"])
def test_a_damaged_update_keeps_memory_and_plan(damaged):
    generator = ScriptedGenerator([update("m one", "p"), damaged, update("m two", "q"), "The answer is x."])
    (result,) = run(generator, [("a b c d. e f g h. i j k l.",)])
    assert [state.memory for state in result.states] == ["m one", "m one", "m two"]
    assert result.states[1].plan == "p"
    assert result.unparsed == 1
    assert len(result.turns) == 4


def test_a_damaged_first_update_leaves_the_empty_memory():
    (result,) = run(ScriptedGenerator(["?", "The answer is x."]), [("a.",)])
    assert result.states == (MemoryState(),)


def test_memory_and_plan_are_cut_to_their_tokens():
    generator = ScriptedGenerator([update("one two three four", "p q r"), "x"])
    (result,) = run(generator, [("a.",)])
    assert result.states == (MemoryState("one two three", "p q"),)
    assert (result.unparsed, result.shortened) == (0, 1)


@pytest.mark.parametrize("documents", [(), ("",), ("  \n",)])
def test_empty_documents_go_straight_to_the_answer(documents):
    (result,) = run(ScriptedGenerator(["The answer is x."]), [documents])
    assert len(result.turns) == 1
    assert result.states == ()


def test_no_question_at_all():
    assert run(ScriptedGenerator([]), [], []) == []


def test_questions_run_together_with_different_numbers_of_chunks():
    documents = [("a b c d. e f g h.",), (), ("i j k l.",)]
    generator = RecordingGenerator([update("a1", "p"), update("c1", "p"), update("a2", "p"), "A", "B", "C"])
    results = run(generator, documents)
    assert [size for size, _, _ in generator.calls] == [2, 1, 3]
    assert [result.reply for result in results] == ["A", "B", "C"]
    assert [[state.memory for state in result.states] for result in results] == [["a1", "a2"], [], ["c1"]]


def test_the_answer_has_its_own_limit_and_turns_their_own_seeds():
    generator = RecordingGenerator([update("m", "p"), update("m", "p"), "x"])
    run(generator, [("a b c d. e f g h.",)])
    # 3 memory + 2 plan + 4 tags + end token; the answer keeps the caller's 7
    assert [sampling.max_new_tokens for _, sampling, _ in generator.calls] == [10, 10, 7]
    assert len({seed for _, _, seed in generator.calls}) == 3


def test_seeds_of_neighbouring_runs_do_not_meet():
    seen: list[int] = []
    for seed in range(4):
        generator = RecordingGenerator([update("m", "p"), update("m", "p"), "x"])
        run_agent(generator, WordTokenizer(), [("a b c d. e f g h.",)], [question()], PARAMS, SAMPLING, seed)
        seen += [used for _, _, used in generator.calls]
    assert len(set(seen)) == len(seen)


def test_progress_is_told_after_every_chunk():
    told: list[Progress] = []
    run(ScriptedGenerator([update("m", "p"), "bad", "x"]), [("a b c d. e f g h.",)], observe=told.append)
    assert told == [
        Progress(0, 1, 2, MemoryState("m", "p")),
        Progress(0, 2, 2, MemoryState("m", "p")),
    ]


def test_a_question_that_leaves_no_room_is_refused_before_any_sampling():
    with pytest.raises(InputError, match=r"memory\.window = 200"):
        run(ScriptedGenerator([]), [("a.",)], [question("w " * 190)])
