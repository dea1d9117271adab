import json
from collections import Counter
from pathlib import Path

import pytest

from tasks.artifacts import read_questions, write_documents
from tasks.corpus.countries import load_countries
from tasks.corpus.documents import country_drafts
from tasks.corpus.grammar import rows, statements
from tasks.corpus.library import Library
from tasks.corpus.splitting import deal_clusters
from tasks.errors import InputError
from tasks.generation.journal import Remembered
from tasks.generation.watched import Watched
from tasks.params import Params, load_params
from tasks.records import AnswerKind, Document, Domain, Question
from tasks.synthesis import synthesize as stage
from tasks.synthesis.language import GrammarLanguage
from tasks.synthesis.questions import Harvest
from tasks.synthesis.reading import read_graph
from tasks.synthesis.tables.answers import Form, gold
from tasks.synthesis.tables.corpus_table import corpus_table
from tasks.synthesis.tables.engine import LockedTable
from tasks.synthesis.tables.readers import ReportReader
from tasks.synthesis.triples import path_of

from .examples import document
from .writers import HonestWriter, companies, told

CHECKOUT = Path(__file__).parents[2]
BASE = CHECKOUT / "models" / "tiny-base"
FEW = ("synthesis.questions_per_domain=60", "synthesis.test_questions_per_domain=8")
WANTED = {"train": 60, "development": 8, "test": 24}


class NoMeter:
    def advance(self, steps: int, label: str) -> None: ...

    def show(self, label: str) -> None: ...


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
    monkeypatch.setattr(stage.Desk, "_played", lambda *_: Harvest(rejections=Counter({"unreadable proposal": 3})))


@pytest.fixture
def small(scratch: Path) -> Params:
    return load_params(
        scratch / "params.yaml", (*FEW, f"base_model={BASE}", f"tracking.uri=sqlite:///{scratch}/runs.db")
    )


@pytest.fixture(scope="module")
def questions(corpus: list[Document]) -> list[Question]:
    params = load_params(CHECKOUT / "params.yaml", FEW)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage.Desk, "_played", lambda *_: Harvest())
        return [one for name in stage.NAMES for one in stage.synthesize(name, params, Library.of(corpus), None)[0]]


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
        graph, _ = read_graph(Library.of(own), split, GrammarLanguage(), min_documents=2)
        table = LockedTable(corpus_table(ReportReader().read(own, Counter()), Counter()).all_columns)
        for question in questions:
            if question.split == split and question.domain is Domain.CORPUS_NUMERIC:
                answer = table.result(question.provenance["sql"])
                assert gold(answer, Form(question.provenance["form"])) == question.gold
            if question.split == split and question.domain is Domain.MULTI_HOP:
                path = path_of(question.provenance)
                assert graph.faults(graph.edges_of(path)) == []
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
    _, metrics = stage.synthesize("self_play", small, Library.of(corpus), None)
    assert metrics["known_by"]["reading_comprehension/train/triple"] == 60
    assert metrics["rejections"]["reading_comprehension/train"]["unreadable proposal"] == 3


def test_a_corpus_too_small_for_a_domain_says_so(small: Params, capsys: pytest.CaptureFixture[str]) -> None:
    lonely = Library.of([document("a", "The mayor of Ulm is Eve.", "text")])
    lines = {}
    for name in stage.NAMES:
        _, metrics = stage.synthesize(name, small, lonely, None)
        lines |= dict(line.split(": ", 1) for line in stage.shortfalls(metrics))
    assert lines["multi_hop/train"].startswith("0 of 60 questions; no cross-document edge")
    assert lines["corpus_numeric/train"] == "0 of 60 questions; the documents state nothing else to ask about"
    assert lines["dialogue_memory/test"] == "0 of 24 questions; the documents state nothing else to ask about"
    assert lines["reading_comprehension/train"].startswith("1 of 60 questions; unreadable proposal (3)")


def test_no_question_at_all_is_said_and_written(small: Params, capsys: pytest.CaptureFixture[str]) -> None:
    write_documents(stage.DOCUMENTS, [document("a", "The mayor of Ulm is Eve.", "text")])
    stage.run("tables", small)
    assert json.loads((stage.METRICS / "synthesize-tables.json").read_text())["questions"] == {}
    assert read_questions(stage.SYNTHESIZED / "tables.parquet") == []
    assert "corpus_numeric/test: 0 of 24 questions" in capsys.readouterr().out


def test_a_missing_corpus_is_named(small: Params) -> None:
    with pytest.raises(InputError, match="does not exist"):
        stage.run("tables", small)


def test_domains_without_weight_are_not_asked_for(scratch: Path, corpus: list[Document]) -> None:
    weights = ("rl.domain_weights.multiple_choice=0", "rl.domain_weights.dialogue_memory=0")
    params = load_params(scratch / "params.yaml", (*FEW, *weights))
    domains = {
        question.domain
        for name in ("knowledge_graph", "self_play")
        for question in stage.synthesize(name, params, Library.of(corpus), None)[0]
    }
    assert domains == {Domain.MULTI_HOP, Domain.READING_COMPREHENSION}


def test_a_model_writes_about_any_documents_and_tells_how_to_answer(small: Params, tmp_path: Path) -> None:
    """The writer of the double reads honestly; its replies are remembered, so that a second run asks nothing."""
    facts = companies(24)
    library = Library.of(told(facts))
    chat = HonestWriter(facts).chat()
    metrics = {}
    for attempt in ("first", "again"):
        writer = Watched(Remembered(chat, tmp_path / "replies.sqlite", "honest"), NoMeter())
        questions, metrics[attempt] = stage.synthesize("knowledge_graph", small, library, writer)
    assert {question.provenance["kind"] for question in questions} >= {"path", "temporal", "causal", "triple"}
    assert all(question.instruction.startswith("End with one line") for question in questions)
    assert metrics["first"]["writer"]["asked"] == len(chat.requests)
    assert metrics["again"]["writer"]["asked"] == 0
    assert metrics["again"]["questions"] == metrics["first"]["questions"]
    assert metrics["again"]["graphs"]["train"]["components"] > 0


def test_rounds_of_self_play_are_curves_and_lines() -> None:
    first = {"round": 1, "proposed": 9, "well_formed": 6, "verified": 4, "mean_solve_rate": 0.75}
    second = {"round": 2, "proposed": 9, "well_formed": 0, "verified": 0, "mean_solve_rate": None}
    assert list(stage.curves([first, second])) == [
        (1, {f"self_play/{name}": value for name, value in first.items() if name != "round"}),
        (2, {"self_play/proposed": 9, "self_play/well_formed": 0, "self_play/verified": 0}),
    ]
    assert list(stage.rounds_said([first, second])) == [
        "self-play round 1: 9 proposed, 6 well-formed, 4 verified, solved 75%",
        "self-play round 2: 9 proposed, 0 well-formed, 0 verified, solved by none",
    ]


def test_wanted_numbers(small: Params) -> None:
    assert stage.wanted_questions(small) == WANTED
