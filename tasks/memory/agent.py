"""The memory agent: reads a text of any length chunk by chunk, carrying a memory and a plan.

QwenLong-L1.5 §4.4, after MemAgent. A query splits into q_core (the question), which every turn sees, and
q_inst (its options), which only the last turn sees. Turn t samples (m_t, p_t) from (m_{t−1}, p_{t−1}, x_t,
q_core); the last turn samples the answer from (m_K, q_core, q_inst). The plan is a note to the reader of
the next chunk: the last turn does not see it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tasks.errors import InputError
from tasks.generation.base import Completion, Generator, Sampling
from tasks.params import MemoryParams
from tasks.prompts import MemoryState, parse_update, question_from_memory, update_prompt
from tasks.records import AnswerKind, Domain, Finish, Question
from tasks.rl.episodes import Turn
from tasks.tokenization import ChatTokenizer

DOCUMENT_SEPARATOR = "\n"
UPDATE_FRAME = "<memory>\n</memory>\n<plan>\n</plan>"
_SENTENCE = re.compile(r""".+?(?:[.!?]["')\]]*\s+|[。！？]\s*|\n\s*|\Z)""", re.DOTALL)
_WORD = re.compile(r"\s*\S+\s*")


@dataclass(frozen=True)
class AgentRun:
    """One trajectory τ = ((m_1, p_1), …, (m_K, p_K), y).

    `turns` are the K updates and the answer as sampled; `states` the K states that the reader carried on.
    `unparsed` counts updates without a readable memory (the old state stays), `shortened` those cut to a
    limit.
    """

    reply: str
    finish: Finish
    turns: tuple[Turn, ...]
    states: tuple[MemoryState, ...]
    unparsed: int
    shortened: int


@dataclass(frozen=True)
class Progress:
    """What the reader of one text holds after chunk `chunk` (1-based) of `chunks`."""

    question: int
    chunk: int
    chunks: int
    state: MemoryState


Observer = Callable[[Progress], None]


def _ignore(_: Progress) -> None:
    """The observer of whoever does not watch."""


@dataclass(frozen=True)
class _Reading:
    """A trajectory on its way: what it still has to read and what it has done."""

    question: Question
    chunks: tuple[str, ...]
    turns: tuple[Turn, ...] = ()
    states: tuple[MemoryState, ...] = ()
    unparsed: int = 0
    shortened: int = 0

    @property
    def state(self) -> MemoryState:
        return self.states[-1] if self.states else MemoryState()


def open_question(name: str, text: str, instruction: str = "") -> Question:
    """A question of which nothing is known but its words: a user's, or a benchmark's that scores in its own way."""
    return Question(
        id=name,
        domain=Domain.READING_COMPREHENSION,
        question=text,
        instruction=instruction,
        gold=(),
        answer_kind=AnswerKind.FREE_TEXT,
        document_ids=(),
        split="test",
        generator="self_play",
        difficulty=0,
        provenance={},
        seed=0,
    )


def chunk_documents(documents: Sequence[str], chunk_tokens: int, count: Callable[[str], int]) -> list[str]:
    """Cut documents into chunks of at most `chunk_tokens` tokens at sentence borders, losing no character.

    The chunks joined give the documents joined by a line break. A sentence longer than a chunk is cut
    between words, a word longer than a chunk between characters. A chunk's length is the sum of its
    sentences' lengths. Blank documents are left out; without any other there is no chunk.
    """
    text = DOCUMENT_SEPARATOR.join(document for document in documents if document.strip())
    chunks: list[str] = []
    room = 0
    for piece, tokens in _pieces(text, chunk_tokens, count):
        if chunks and tokens <= room:
            chunks[-1] += piece
            room -= tokens
        else:
            chunks.append(piece)
            room = chunk_tokens - tokens
    return chunks


def run_agent(
    generator: Generator,
    tokenizer: ChatTokenizer,
    documents: Sequence[tuple[str, ...]],
    questions: Sequence[Question],
    params: MemoryParams,
    sampling: Sampling,
    seed: int,
    observe: Observer = _ignore,
) -> list[AgentRun]:
    """Read `documents[i]` for `questions[i]`, all together turn by turn; one trajectory per question.

    `sampling.max_new_tokens` limits the final answer only; update turns may write a whole memory and plan.
    The same question may occur several times (once per trajectory of a group): samples are drawn
    independently. `observe` hears of every update. A text without content goes straight to the final turn
    with an empty memory.

    Raises:
        InputError: a question is so long that an update turn would not fit into `params.window`.
    """
    limit = _update_tokens(tokenizer, params)
    chunks = _chunks_of(documents, params.chunk_tokens, tokenizer.count)
    readings = [_Reading(question, text) for question, text in zip(questions, chunks, strict=True)]
    for reading in readings:
        _check_window(reading.question, tokenizer, params, limit)
    updates = replace(sampling, max_new_tokens=limit, samples=1)
    for turn in range(max((len(reading.chunks) for reading in readings), default=0)):
        active = [index for index, reading in enumerate(readings) if turn < len(reading.chunks)]
        prompts = [_update_ids(readings[index], turn, tokenizer) for index in active]
        completions = generator.generate(prompts, updates, _turn_seed(seed, turn))
        for index, prompt, (completion,) in zip(active, prompts, completions, strict=True):
            readings[index] = _updated(readings[index], prompt, completion, tokenizer, params)
            total = len(readings[index].chunks)
            observe(Progress(index, turn + 1, total, readings[index].state))
    return _answer(generator, tokenizer, readings, replace(sampling, samples=1), seed)


def _answer(
    generator: Generator,
    tokenizer: ChatTokenizer,
    readings: Sequence[_Reading],
    sampling: Sampling,
    seed: int,
) -> list[AgentRun]:
    prompts = [
        tokenizer.prompt_ids(question_from_memory(reading.state.memory, reading.question)) for reading in readings
    ]
    completions = generator.generate(prompts, sampling, _turn_seed(seed, -1)) if prompts else []
    return [
        AgentRun(
            reply=completion.text,
            finish=completion.finish,
            turns=(*reading.turns, _turn(prompt, completion)),
            states=reading.states,
            unparsed=reading.unparsed,
            shortened=reading.shortened,
        )
        for reading, prompt, (completion,) in zip(readings, prompts, completions, strict=True)
    ]


def _updated(
    reading: _Reading,
    prompt: list[int],
    completion: Completion,
    tokenizer: ChatTokenizer,
    params: MemoryParams,
) -> _Reading:
    written = parse_update(completion.text)
    state = reading.state if written is None else _within_limits(written, tokenizer, params)
    return replace(
        reading,
        turns=(*reading.turns, _turn(prompt, completion)),
        states=(*reading.states, state),
        unparsed=reading.unparsed + (written is None),
        shortened=reading.shortened + (written is not None and state != written),
    )


def _within_limits(state: MemoryState, tokenizer: ChatTokenizer, params: MemoryParams) -> MemoryState:
    return MemoryState(
        memory=_first_tokens(state.memory, params.memory_tokens, tokenizer),
        plan=_first_tokens(state.plan, params.plan_tokens, tokenizer),
    )


def _first_tokens(text: str, limit: int, tokenizer: ChatTokenizer) -> str:
    ids = tokenizer.encode(text)
    return text if len(ids) <= limit else tokenizer.decode(ids[:limit])


def _update_ids(reading: _Reading, turn: int, tokenizer: ChatTokenizer) -> list[int]:
    state = reading.state
    return tokenizer.prompt_ids(
        update_prompt(reading.chunks[turn], reading.question.question, state.memory, state.plan)
    )


def _update_tokens(tokenizer: ChatTokenizer, params: MemoryParams) -> int:
    """Longest useful update in tokens: a full memory, a full plan, their tags and the end token."""
    return params.memory_tokens + params.plan_tokens + len(tokenizer.encode_reply(UPDATE_FRAME)) + 1


def _check_window(question: Question, tokenizer: ChatTokenizer, params: MemoryParams, limit: int) -> None:
    frame = tokenizer.prompt_length(update_prompt("", question.question, "", ""))
    need = frame + params.chunk_tokens + params.memory_tokens + params.plan_tokens + limit
    if need > params.window:
        raise InputError(
            f"question {question.id!r} with its instructions takes {frame} tokens; with a chunk, the memory "
            f"and the update an agent turn needs {need}, more than memory.window = {params.window}; "
            "shorten the question or lower memory.chunk_tokens"
        )


def _chunks_of(
    documents: Sequence[tuple[str, ...]], chunk_tokens: int, count: Callable[[str], int]
) -> list[tuple[str, ...]]:
    """Chunks of each text; a text that occurs G times is cut once."""
    cut: dict[tuple[str, ...], tuple[str, ...]] = {}
    for texts in documents:
        if texts not in cut:
            cut[texts] = tuple(chunk_documents(texts, chunk_tokens, count))
    return [cut[texts] for texts in documents]


def _pieces(text: str, limit: int, count: Callable[[str], int]) -> list[tuple[str, int]]:
    """Sentences with their token counts; a sentence above the limit as words, such a word as halves."""
    return [piece for sentence in _SENTENCE.findall(text) for piece in _smaller(sentence, limit, count)]


def _smaller(sentence: str, limit: int, count: Callable[[str], int]) -> list[tuple[str, int]]:
    tokens = count(sentence)
    if tokens <= limit:
        return [(sentence, tokens)]
    words = _WORD.findall(sentence)
    if len(words) > 1:
        return [piece for word in words for piece in _smaller(word, limit, count)]
    if len(sentence) == 1:
        return [(sentence, tokens)]
    middle = len(sentence) // 2
    return _smaller(sentence[:middle], limit, count) + _smaller(sentence[middle:], limit, count)


def _turn(prompt: Sequence[int], completion: Completion) -> Turn:
    """The turn as sampled: a text is never tokenised again, it might come out differently."""
    return Turn(tuple(prompt), completion.token_ids, completion.finish, completion.logprobs)


def _turn_seed(seed: int, turn: int) -> int:
    """An own seed per turn; −1 is the answer. Sums of seed and turn would repeat between steps."""
    return int(np.random.SeedSequence([seed, turn + 1]).generate_state(1)[0])
