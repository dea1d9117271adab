from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import combinations

import pytest

from tasks.corpus.grammar import CAPITAL_OF, CURRENCY, LARGEST_NEIGHBOUR
from tasks.corpus.library import Library
from tasks.corpus.names import mentions
from tasks.generation.chat import Request
from tasks.generation.scripted import ScriptedChat
from tasks.records import AnswerKind, Document, Domain, Question
from tasks.synthesis import asking
from tasks.synthesis.asking import WORDINGS_PER_QUESTION
from tasks.synthesis.extraction import StatedFacts
from tasks.synthesis.graph import KnowledgeGraph
from tasks.synthesis.knowledge_graph import knowledge_graph_questions
from tasks.synthesis.language import JOINED_BY_NUMBER, MODEL_KINDS, GrammarLanguage, Language, ModelLanguage
from tasks.synthesis.makers import GraphRules, Maker
from tasks.synthesis.multi_hop import NO_CAUSE
from tasks.synthesis.questions import IN_PLAIN_WORDS, Harvest
from tasks.synthesis.reading import read_graph
from tasks.synthesis.temporal_riddles import NO_DATES, SAME_TIME, dated_events, temporal_riddles
from tasks.synthesis.triples import path_of
from tasks.synthesis.wording import NAMED, PLAIN_KINDS

from .examples import document, stated
from .graphs import fact, graph_from
from .writers import HonestWriter, companies, told

WORLD = companies(24)


def asked(documents: list[Document], wanted: int, rules: GraphRules, language: Language) -> Harvest:
    return knowledge_graph_questions(Library.of(documents), "train", wanted, rules, language)[Domain.MULTI_HOP]


@cache
def written() -> Harvest:
    return asked(told(WORLD), 40, GraphRules(4, 3, 0), ModelLanguage(HonestWriter(WORLD).chat(), 0))


def of_kind(kind: str) -> list[Question]:
    return [question for question in written().questions if question.provenance["kind"] == kind]


def test_closed_questions_walk_the_chain_backwards() -> None:
    france = f"{CAPITAL_OF.sentence('France', 'Paris')} {LARGEST_NEIGHBOUR.sentence('France', 'Spain')}"
    documents = [document("france", france), document("spain", CURRENCY.sentence("Spain", "EUR"))]
    found = asked(documents, 9, GraphRules(3, 2, 0), GrammarLanguage()).questions
    assert {question.question: question.gold for question in found} == {
        "What is the currency of the largest neighbour of the country with the capital Paris?": ("EUR",),
        "What is the currency of the largest neighbour of France?": ("EUR",),
    }


def test_closed_questions_record_a_path_that_can_be_walked_again() -> None:
    documents = stated(
        [(f"X{n}", "guide", f"Y{n}", f"one{n}") for n in range(8)]
        + [(f"Y{n}", "home", f"Z{n}", f"two{n}") for n in range(8)]
        + [(f"Z{n}", "river", f"W{n}", f"three{n}") for n in range(4)]
    )
    language, rules = GrammarLanguage(), GraphRules(3, 2, 0)
    harvest = asked(documents, 9, rules, language)
    assert sorted(question.difficulty for question in harvest.questions) == [2] * 6 + [3] * 3
    graph, _ = read_graph(Library.of(documents), "train", language, 2)
    for question in harvest.questions:
        path = path_of(question.provenance)
        assert graph.faults(graph.edges_of(path)) == []
        assert question.gold == (path[-1].target,)
        assert question.document_ids == tuple(hop.document_id for hop in path)
    assert asked(documents, 9, rules, language).questions == harvest.questions
    everything = asked(documents, 100, rules, language).questions
    assert sorted(question.difficulty for question in everything) == [2] * 12 + [3] * 4
    spread = asked(documents, 100, replace(rules, min_documents=3), language)
    assert {question.difficulty for question in spread.questions} == {3}
    assert any(reason.startswith("path, 3 hops: ") for reason in spread.rejections)


def test_a_writer_asks_all_four_kinds_in_equal_shares() -> None:
    kinds = Counter(question.provenance["kind"] for question in written().questions)
    assert kinds == {"path": 10, "causal": 10, "temporal": 10, "hypothetical": 10}
    assert written().offer is not None


def facts_of(question: Question) -> list[tuple[str, str, str]]:
    return [
        (hop["target"], hop["relation"], hop["source"])
        if hop["inverse"]
        else (hop["source"], hop["relation"], hop["target"])
        for part in ("hops", "clues")
        for hop in question.provenance[part]
    ]


def test_every_fact_is_in_the_documents_and_they_are_many() -> None:
    known = {(*said[:3],) for said in WORLD}
    texts = {one.id: one.text for one in told(WORLD)}
    for question in written().questions:
        assert set(facts_of(question)) <= known
        assert len(question.document_ids) >= 3
        for part in ("hops", "clues"):
            for hop in question.provenance[part]:
                assert texts[hop["document_id"]][hop["start"] : hop["end"]] == hop["sentence"]


def test_no_question_names_its_answer_or_the_way_or_leaks_another() -> None:
    questions = written().questions
    for question in questions:
        assert not mentions(question.question, question.gold[0])
    for one, other in combinations([q for q in questions if q.provenance["kind"] in {"path", "causal"}], 2):
        start = one.provenance["hops"][0]["source"]
        assert not (mentions(other.question, start) and mentions(other.question, one.gold[0]))


def test_paths_about_cause_end_with_a_cause() -> None:
    assert {question.provenance["hops"][-1]["relation"] for question in of_kind("causal")} == {"led to"}


def test_times_are_compared_by_the_graph() -> None:
    years = {subject: int(value) for subject, relation, value, _ in WORLD if relation == "was established in"}
    spans = [question for question in of_kind("temporal") if question.answer_kind is AnswerKind.NUMBER]
    orders = [question for question in of_kind("temporal") if question.answer_kind is AnswerKind.TEXT]
    assert spans and orders
    for question in of_kind("temporal"):
        one, other = (hop["source"] for hop in question.provenance["hops"])
        if question in spans:
            assert question.gold == (str(abs(years[one] - years[other])),)
        else:
            pick = min if "earlier" in question.question else max
            assert question.gold == (pick(one, other, key=years.__getitem__),)
        assert not any(mentions(question.question, str(year)) for year in (years[one], years[other]))


def test_a_supposition_changes_the_answer() -> None:
    values = {(subject, relation): value for subject, relation, value, _ in WORLD}
    for question in of_kind("hypothetical"):
        given, wanted = question.provenance["hops"]
        real = values[given["target"], wanted["relation"]]
        assert question.gold == (values[wanted["source"], wanted["relation"]],)
        assert question.gold[0] != real
        assert given["source"] in question.question


def test_what_the_graph_lacks_is_said_and_made_up_for() -> None:
    plain = [said for said in WORLD if said[1] not in {"led to", "was established in"}]
    harvest = asked(told(plain), 20, GraphRules(4, 3, 0), ModelLanguage(HonestWriter(plain).chat(), 0))
    assert {NO_CAUSE: 1, f"temporal: {NO_DATES}": 1}.items() <= harvest.rejections.items()
    kinds = Counter(question.provenance["kind"] for question in harvest.questions)
    assert set(kinds) == {"hypothetical", "path"}
    assert len(harvest.questions) == 20


def test_a_writer_that_tells_answers_from_its_own_knowledge_is_refused_and_not_asked_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "plain_words", lambda _: "")
    harvest = leaking_harvest()
    assert harvest.questions == []
    assert 4 < harvest.rejections[NAMED] < 4 * len(MODEL_KINDS) * WORDINGS_PER_QUESTION  # kinds make up for others


def test_what_a_writer_cannot_word_is_asked_in_plain_words_that_give_nothing_away() -> None:
    harvest = leaking_harvest()
    assert len(harvest.questions) == 4
    assert harvest.rejections[f"{IN_PLAIN_WORDS}: {NAMED}"] == 4
    for question in harvest.questions:
        assert question.provenance["plain_words"] == NAMED
        way = [hop["target"] for hop in question.provenance["hops"]]
        assert not any(mentions(question.question, name) for name in way)
        assert question.provenance["kind"] in PLAIN_KINDS


def leaking_harvest() -> Harvest:
    """Of a writer that names everything it knows."""
    world = companies(8)
    honest = HonestWriter(world)

    def leaking(request: Request) -> str:
        if request.schema and issubclass(request.schema, StatedFacts):
            return honest.read(request)
        everything = ", ".join(dict.fromkeys(name for said in world for name in (said[0], said[2])))
        return honest.word(request).replace('?"', f' ({everything})?"')

    chat = ScriptedChat(leaking, context_tokens=8192, max_output_tokens=1024)
    return asked(told(world), 4, GraphRules(4, 3, 0), ModelLanguage(chat, 0))


def maker_of(graph: KnowledgeGraph) -> Maker:
    return Maker(graph, ModelLanguage(ScriptedChat([]), 0), GraphRules(4, 2, 0), "temporal")


def test_equal_numbers_and_dates_join_nothing() -> None:
    opened, founded = fact("A", "opened in", "1910", "d1"), fact("1910", "was founded in", "B", "d2", inverse=True)
    language = ModelLanguage(ScriptedChat([]), 0)
    assert language.fault((opened, founded)) == JOINED_BY_NUMBER
    assert language.fault((founded, fact("B", "is in", "C", "d3"))) == ""


@pytest.mark.parametrize(
    ("dates", "years"),
    [
        (["1990", "1995"], [1990, 1995]),
        (["1990", "1995", ""], [1990, 1995]),
        (["1990", "soon"], []),  # one date alone compares with nothing
        ([], []),
    ],
)
def test_events_are_facts_with_a_date(dates: list[str], years: list[int]) -> None:
    triples = [fact(f"S{n}", "bought", f"F{n}", f"d{n}", date) for n, date in enumerate(dates)]
    events = dated_events(maker_of(graph_from(triples)))
    assert [when.year for found in events for _, when in found] == years


def test_numbers_that_look_like_years_are_no_dates() -> None:
    staff = [fact(f"E{n}", "Staff", number, f"d{n}") for n, number in enumerate(["1734", "1170", "230"])]
    assert dated_events(maker_of(graph_from(staff))) == []
    assert len(dated_events(maker_of(graph_from(staff[:2])))) == 1  # nothing speaks against years


def test_documents_that_date_a_fact_differently_make_it_no_event() -> None:
    sure = [fact("A", "bought", "B", "d1", "1990"), fact("C", "bought", "D", "d2", "1995")]
    closer = dated_events(maker_of(graph_from([*sure, fact("A", "bought", "B", "d3", "1990-05-02")])))
    assert [when.low == when.high for _, when in closer[0]] == [True, False]
    assert dated_events(maker_of(graph_from([*sure, fact("A", "bought", "B", "d3", "1991")]))) == []


def test_dates_that_may_be_the_same_are_not_compared() -> None:
    triples = [fact("A", "bought", "B", "d1", "1990"), fact("C", "bought", "D", "d2", "1990-05")]
    maker = maker_of(graph_from(triples))
    assert list(temporal_riddles(maker, 10)) == []
    assert maker.counted == {SAME_TIME: 10}


def test_paths_are_long_enough_to_be_spread() -> None:
    assert list(GraphRules(4, 3, 0).hops) == [4, 3]
    assert list(GraphRules(3, 1, 0).hops) == [3, 2]
