import json
from collections import Counter
from pathlib import Path

import pytest

from tasks.artifacts import read_questions, write_documents
from tasks.corpus.countries import load_countries
from tasks.corpus.documents import country_drafts
from tasks.corpus.grammar import rows, statements
from tasks.corpus.splitting import deal_clusters
from tasks.errors import InputError
from tasks.params import Params, load_params
from tasks.records import AnswerKind, Document, Domain, Question
from tasks.synthesis import synthesize as stage
from tasks.synthesis.graph import KnowledgeGraph, faults
from tasks.synthesis.multi_hop import path_of
from tasks.synthesis.questions import Harvest
from tasks.synthesis.tables import LockedTable, read_rows

from .examples import document

CHECKOUT = Path(__file__).parents[2]
FEW = ("synthesis.questions_per_domain=60", "synthesis.test_questions_per_domain=8")
WANTED = {"train": 60, "development": 8, "test": 24}


@pytest.fixture(scope="module")
def corpus() -> list[Document]:
    drafts = country_drafts(load_countries(), seed=0)
    counts: dict[str, Counter[str]] = {}
    for draft in drafts:
        counts.setdefault(draft.cluster, Counter())[draft.kind] += 1
    splits = deal_clusters(counts, {"train": 0.6, "development": 0.1, "test": 0.3}, 0)
    return [draft.document(splits[draft.cluster]) for draft in drafts]


@pytest.fixture(autouse=True)
def _nobody_proposes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model: self-play ends without a question."""
    monkeypatch.setattr(stage, "_play", lambda *_: Harvest(rejections=Counter({"unreadable proposal": 3})))


@pytest.fixture
def small(scratch: Path) -> Params:
    return load_params(scratch / "params.yaml", (*FEW, f"tracking.uri=sqlite:///{scratch}/runs.db"))


@pytest.fixture(scope="module")
def questions(corpus: list[Document]) -> list[Question]:
    params = load_params(CHECKOUT / "params.yaml", FEW)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage, "_play", lambda *_: Harvest())
        return [one for name in stage.NAMES for one in stage.synthesize(name, params, corpus)[0]]


def test_questions_rest_on_documents_of_their_split_and_are_distinct(
    questions: list[Question], corpus: list[Document]
) -> None:
    split = {one.id: one.split for one in corpus}
    assert all(split[name] == one.split for one in questions for name in one.document_ids)
    assert len({one.id for one in questions}) == len(questions)
    counted = Counter((one.domain, one.split) for one in questions)
    assert counted == {(domain, name): WANTED[name] for domain in Domain for name in WANTED}


def walked(question: Question, texts: list[str]) -> str:
    """Follow the recorded hops through the evidence texts alone."""
    said = [statement for text in texts for statement in statements(text)]
    here = str(question.provenance["hops"][0]["source"])
    for hop in question.provenance["hops"]:
        assert any(hop["sentence"] == one.sentence for one in said)
        (here,) = {
            one.subject if hop["inverse"] else one.value
            for one in said
            if one.relation == hop["relation"] and (one.value if hop["inverse"] else one.subject) == here
        }
    return here


def computed(question: Question, texts: list[str]) -> str:
    """Add up or compare the rows that the question names, from the evidence texts alone."""
    facts = {tuple(fact) for fact in question.provenance["facts"]}
    counts = [n for text in texts for country, measure, n in rows(text) if (measure, country.lower()) in facts]
    assert len(counts) == len(facts)
    return str(sum(counts) if "total" in question.question else max(counts))


def said_last(question: Question, texts: list[str]) -> str:
    (text,), ((_, subject),) = texts, question.provenance["facts"]
    return [one.value for one in statements(text) if one.subject.lower() == subject][-1]


def test_every_gold_answer_follows_from_the_evidence_texts(questions: list[Question], corpus: list[Document]) -> None:
    texts = {one.id: one.text for one in corpus}
    answer = {"path": walked, "triple": walked, "sql": computed, "dialogue": said_last}
    for question in questions:
        (gold,) = question.gold
        if question.answer_kind is AnswerKind.LETTER:
            gold = question.options["ABCD".index(gold)]
        evidence = [texts[name] for name in question.document_ids]
        assert answer[question.provenance["kind"]](question, evidence) == gold


def test_provenance_reproduces_the_gold_over_the_whole_split(questions: list[Question], corpus: list[Document]) -> None:
    for split in WANTED:
        own = [one for one in corpus if one.split == split]
        graph, table = KnowledgeGraph.of(own), LockedTable(read_rows(own).rows)
        for question in questions:
            if question.split == split and question.domain is Domain.CORPUS_NUMERIC:
                assert table.gold(question.provenance["sql"]) == question.gold[0]
            if question.split == split and question.domain is Domain.MULTI_HOP:
                path = path_of(question.provenance)
                assert faults(graph, path) == []
                assert (path[-1].target,) == question.gold


def test_the_command_writes_the_same_bytes_again(small: Params, corpus: list[Document]) -> None:
    write_documents(stage.DOCUMENTS, corpus)
    stage.run("tables", small)
    path = stage.SYNTHESIZED / "tables.parquet"
    first = path.read_bytes()
    stage.run("tables", small)
    assert path.read_bytes() == first
    metrics = json.loads((stage.METRICS / "synthesize-tables.json").read_text())
    assert metrics["questions"] == {
        "corpus_numeric/development": 8,
        "corpus_numeric/test": 24,
        "corpus_numeric/train": 60,
    }
    assert len(read_questions(path)) == 92


def test_missing_self_play_questions_are_made_up_by_stated_facts_and_counted(
    small: Params, corpus: list[Document]
) -> None:
    _, metrics = stage.synthesize("self_play", small, corpus)
    assert metrics["known_by"]["reading_comprehension/train/triple"] == 60
    assert metrics["rejections"]["reading_comprehension/train"]["unreadable proposal"] == 3


def test_a_corpus_too_small_for_a_domain_is_one_clear_error(small: Params) -> None:
    lonely = [document("a", "The mayor of Ulm is Eve.", "text")]
    with pytest.raises(InputError, match=r"the train documents give no multi_hop question: no cross-document edge"):
        stage.synthesize("knowledge_graph", small, lonely)
    with pytest.raises(InputError, match="no corpus_numeric question: they state nothing to ask about"):
        stage.synthesize("tables", small, lonely)
    with pytest.raises(InputError, match="no dialogue_memory question"):
        stage.synthesize("self_play", small, lonely)
    with pytest.raises(InputError, match="does not exist"):
        stage.run("tables", small)


def test_wanted_numbers(small: Params) -> None:
    assert stage.wanted_questions(small) == WANTED
