"""What the base model is taught, as token sequences with a loss mask.

Each lesson is (ids, learned): `learned` marks the tokens that carry loss. Copying and restating come first (without
recall nothing else forms), then documents with many questions each and the roles of the memory agent, the proposer
and the judge.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tasks.base_model.worlds import Fact, Problem, World, make_problem, make_world
from tasks.prompts import (
    EMPTY_MEMORY,
    EMPTY_PLAN,
    ask,
    final_prompt,
    join_documents,
    judge_prompt,
    propose_prompt,
)
from tasks.records import Domain
from tasks.tokenization import ChatTokenizer

Lesson = tuple[list[int], list[bool]]
DONE = "done."


@dataclass(frozen=True)
class School:
    """What lessons are made of: the tokenizer, the value pools and the shape of the sequences."""

    tokenizer: ChatTokenizer
    pools: Mapping[str, Sequence[str]]
    regions: Sequence[str]
    document_tokens: int  # longest context shown, in tokens: longer ones are left to reinforcement learning
    sequence_tokens: int
    reasoned_share: float


def recall_lesson(words: Sequence[int], length: int, rng: random.Random) -> Lesson:
    """Pairs key → value over random words, shown and then asked in other orders; fillers may lie in between."""
    gap = rng.choice((0, 0, 1, 2))
    number = length // (3 * (2 + gap))
    drawn = rng.sample(words, 2 * number + gap)
    filler, keys, values = drawn[:gap], drawn[gap : gap + number], drawn[gap + number :]
    pairs = list(zip(keys, values, strict=True))
    ids: list[int] = []
    learned: list[bool] = []
    for showing in range(3):
        rng.shuffle(pairs)
        for key, value in pairs:
            ids += [key, *filler, value]
            learned += [False] * (1 + gap) + [showing > 0]
    return _fit(ids, learned, length, words[0])


def copy_lesson(words: Sequence[int], length: int, rng: random.Random) -> Lesson:
    """Random tokens, then segments copied from random earlier places."""
    ids = rng.choices(words, k=length // 3)
    learned = [False] * len(ids)
    while len(ids) < length:
        span = rng.randint(3, 7)
        start = rng.randrange(len(ids) - span)
        ids += ids[start : start + span]
        learned += [False] + [True] * (span - 1)
    return ids[:length], learned[:length]


def restate_lesson(school: School, size: int, length: int, rng: random.Random) -> Lesson:
    """Documents, then their statements again in another order; the values carry the loss."""
    tokenizer = school.tokenizer
    world = make_world(school.pools, school.regions, size, rng)
    ids = tokenizer.encode(join_documents(world.documents))
    learned = [False] * len(ids)
    facts = list(world.facts.values())
    while facts and len(ids) < length:
        rng.shuffle(facts)
        for fact in facts:
            sentence = tokenizer.encode(fact.statement)
            ids += sentence
            learned += [False] * (len(sentence) - 2) + [True, False]
    return _fit(ids, learned, length, tokenizer.pad_id)


def answer_lesson(school: School, rng: random.Random) -> Lesson:
    """One context, many questions of all domains, answered directly or after quoting the evidence."""
    world = _world(school, rng)

    def exchange() -> tuple[str, str] | None:
        problem = make_problem(world, rng.choice(list(Domain)), rng)
        if problem is None:
            return None
        return ask(problem.question, problem.options), _reply(problem, rng.random() < school.reasoned_share)

    return _conversation(school, join_documents(world.documents), exchange)


def memory_lesson(school: School, rng: random.Random) -> Lesson:
    """One chunk (documents without headings), many questions with memories: update the memory and the plan."""
    world, elsewhere = _world(school, rng), _world(school, rng)

    def exchange() -> tuple[str, str] | None:
        asked = world if rng.random() < 0.75 else elsewhere
        problem = make_problem(asked, rng.choice(list(Domain)), rng)
        if problem is None:
            return None
        before = _known_before(problem, world, asked is world, rng)
        after = [*before]
        known = {fact.key for fact in before}
        for fact in problem.evidence:
            here = world.facts.get(fact.key)
            if here is not None and here.statement == fact.statement:
                after = [other for other in after if other.key != fact.key] + [fact]
                known.add(fact.key)
            elif fact.key not in known and problem.domain is Domain.MULTI_HOP:
                break  # the next hop cannot be known before this one
        missing = [fact for fact in problem.evidence if fact.key not in known]
        plan = missing[0].wanted if missing else DONE
        old_plan = rng.choice((EMPTY_PLAN, problem.evidence[0].wanted)) if not before else rng.choice((DONE, plan))
        suffix = f"{ask(problem.question)}\nMemory: {_memory(before)}\nPlan: {old_plan}\nUpdate the memory."
        return suffix, f"<memory> {_memory(after)} </memory> <plan> {plan} </plan>"

    return _conversation(school, "\n".join(world.documents), exchange)


def _known_before(problem: Problem, world: World, present: bool, rng: random.Random) -> list[Fact]:
    """What the memory may hold before this chunk: nothing, earlier hops, or a value that the chunk corrects."""
    chance = rng.random()
    if not present:
        return list(problem.evidence[: rng.randint(0, len(problem.evidence))])
    if len(problem.evidence) == 1:
        (fact,) = problem.evidence
        if problem.domain is Domain.DIALOGUE_MEMORY and chance < 0.4:
            wrong = rng.choice(world.pools["calling code"])
            return [Fact(fact.key, wrong, fact.statement.replace(fact.value, wrong))]
        return [fact] if chance < 0.2 else []
    return list(problem.evidence[:1]) if chance < 0.4 else []


def final_lesson(school: School, rng: random.Random) -> Lesson:
    """Answer from a memory, documents gone."""

    def exchange() -> tuple[str, str] | None:
        problem = make_problem(_world(school, rng), rng.choice(list(Domain)), rng)
        if problem is None:
            return None
        prompt = final_prompt(_memory(problem.evidence), problem.question, problem.options)
        return prompt, _reply(problem, rng.random() < school.reasoned_share)

    return _conversation(school, "", exchange)


def propose_lesson(school: School, rng: random.Random) -> Lesson:
    """Propose an easy (one fact) or a hard (several hops) question that differs from the earlier ones."""
    world = _world(school, rng)
    earlier: list[str] = []

    def exchange() -> tuple[str, str] | None:
        hard = rng.random() < 0.4
        problem = make_problem(world, Domain.MULTI_HOP if hard else Domain.READING_COMPREHENSION, rng)
        if problem is None or problem.question in earlier:
            return None
        prompt = propose_prompt((), "hard" if hard else "easy", earlier[-3:]).lstrip("\n")
        earlier.append(problem.question)
        return prompt, f"Question: {problem.question} Answer: {problem.answer}."

    return _conversation(school, join_documents(world.documents), exchange)


def judge_lesson(school: School, rng: random.Random) -> Lesson:
    """Say whether a given answer equals the reference answer."""

    def exchange() -> tuple[str, str] | None:
        problem = make_problem(_world(school, rng), rng.choice(list(Domain)), rng)
        if problem is None:
            return None
        equal = rng.random() < 0.5
        given = problem.answer if equal else rng.choice(school.pools[rng.choice(list(school.pools))])
        verdict = "correct" if given == problem.answer else "incorrect"
        return judge_prompt(problem.question, problem.answer, given), f"Verdict: {verdict}."

    return _conversation(school, "", exchange)


def _world(school: School, rng: random.Random) -> World:
    world = make_world(school.pools, school.regions, rng.randint(2, 5), rng)
    kept: list[str] = []
    for text in world.documents:
        if kept and school.tokenizer.count(join_documents([*kept, text])) > school.document_tokens:
            break
        kept.append(text)
    return world if len(kept) == len(world.documents) else World(tuple(kept), _restrict(world, kept), world.pools)


def _restrict(world: World, documents: Sequence[str]) -> dict[tuple[str, str], Fact]:
    text = "\n".join(documents)
    return {key: fact for key, fact in world.facts.items() if fact.statement[1:] in text}


def _reply(problem: Problem, reasoned: bool) -> str:
    answer = f"The answer is {problem.answer}."
    if not reasoned:
        return answer
    quoted = " ".join(fact.statement for fact in problem.evidence)
    thought = f"{quoted} {problem.conclusion}".strip()
    return f"<think> {thought} </think> {answer}"


def _memory(facts: Sequence[Fact]) -> str:
    return " ".join(fact.statement for fact in facts) or EMPTY_MEMORY


def _conversation(school: School, opening: str, exchange: Callable[[], tuple[str, str] | None]) -> Lesson:
    """Chain exchanges behind one opening until the sequence is full; only replies carry loss."""
    tokenizer = school.tokenizer
    ids: list[int] = []
    learned: list[bool] = []
    fruitless = 0
    while len(ids) < school.sequence_tokens and fruitless < 30:
        turn = exchange()
        if turn is None:
            fruitless += 1
            continue
        prompt, reply = turn
        text = prompt if ids or not opening else f"{opening}\n{prompt}"
        asked, replied = tokenizer.prompt_ids(text), [*tokenizer.encode_reply(reply), tokenizer.end_id]
        ids += asked + replied
        learned += [False] * len(asked) + [True] * len(replied)
    return _fit(ids, learned, school.sequence_tokens, tokenizer.pad_id)


def _fit(ids: list[int], learned: list[bool], length: int, filler: int) -> Lesson:
    missing = max(0, length - len(ids))
    return ids[:length] + [filler] * missing, learned[:length] + [False] * missing
