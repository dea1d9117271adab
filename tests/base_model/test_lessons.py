"""Lessons teach what their documents state."""

import random

import pytest

from tasks.base_model.lessons import (
    School,
    answer_lesson,
    copy_lesson,
    final_lesson,
    judge_lesson,
    memory_lesson,
    propose_lesson,
    recall_lesson,
    restate_lesson,
)
from tasks.base_model.vocabulary import build_tokenizer
from tasks.base_model.worlds import make_problem, make_world
from tasks.corpus.countries import load_countries, vocabulary
from tasks.records import Domain
from tasks.tokenization import ChatTokenizer

COUNTRIES = load_countries()
SCHOOL = School(
    ChatTokenizer(build_tokenizer(COUNTRIES)), vocabulary(COUNTRIES), sorted({c.region for c in COUNTRIES}),
    document_tokens=128, sequence_tokens=256, reasoned_share=0.5,
)  # fmt: skip


@pytest.mark.parametrize(
    "lesson",
    [answer_lesson, memory_lesson, final_lesson, propose_lesson, judge_lesson],
    ids=lambda f: f.__name__,
)
def test_lessons_have_one_length_no_unknown_words_and_learn_something(lesson) -> None:
    for seed in range(10):
        ids, learned = lesson(SCHOOL, random.Random(seed))
        assert len(ids) == len(learned) == 256
        assert any(learned)
        assert "[UNK]" not in SCHOOL.tokenizer.decode(ids)


@pytest.mark.parametrize("domain", list(Domain))
def test_answers_follow_from_the_documents(domain: Domain) -> None:
    found = 0
    for seed in range(200):
        rng = random.Random(seed)
        world = make_world(SCHOOL.pools, SCHOOL.regions, 4, rng)
        problem = make_problem(world, domain, rng)
        if problem is None:
            continue
        found += 1
        text = "\n".join(world.documents)
        assert all(fact.statement[1:] in text for fact in problem.evidence)
        if domain is Domain.MULTIPLE_CHOICE:
            assert problem.options["ABCD".index(problem.answer)] == problem.evidence[0].value
            assert len(set(problem.options)) == 4
        elif domain is Domain.CORPUS_NUMERIC:
            counts = [int(fact.value) for fact in problem.evidence]
            assert int(problem.answer) == (sum(counts) if "total" in problem.question else max(counts))
        else:
            assert problem.answer == problem.evidence[-1].value
    assert found > 50


def test_hops_chain() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        problem = make_problem(make_world(SCHOOL.pools, SCHOOL.regions, 4, rng), Domain.MULTI_HOP, rng)
        if problem is not None:
            links = zip(problem.evidence, problem.evidence[1:], strict=False)
            assert all(second.key[1] == first.value for first, second in links)


def test_recalled_values_were_shown_before() -> None:
    ids, learned = recall_lesson(range(20, 400), 64, random.Random(0))
    assert any(learned)
    assert all(ids[place] in ids[:place] for place, flag in enumerate(learned) if flag)


def test_copied_tokens_were_shown_before() -> None:
    ids, learned = copy_lesson(range(20, 400), 64, random.Random(0))
    assert all(ids[place] in ids[:place] for place, flag in enumerate(learned) if flag)


def test_restated_values_stand_in_the_documents() -> None:
    ids, learned = restate_lesson(SCHOOL, 2, 96, random.Random(3))
    assert any(learned)
    assert all(ids[place] in ids[:place] for place, flag in enumerate(learned) if flag)
