import random
from collections import Counter

import pytest

from tasks.corpus.grammar import CALLING_CODE, CAPITAL_OF, CURRENCY, LETTERS
from tasks.corpus.library import Library
from tasks.records import AnswerKind, Document, Domain
from tasks.synthesis.dialogues import dialogue_questions
from tasks.synthesis.facts import FEW_OPTIONS, SEVERAL, ValuePool, reading_questions
from tasks.synthesis.knowledge_graph import knowledge_graph_questions
from tasks.synthesis.language import GrammarLanguage, ModelLanguage
from tasks.synthesis.leaks import GIVEN_AWAY
from tasks.synthesis.makers import GraphRules
from tasks.synthesis.questions import Harvest

from .examples import document
from .graphs import fact, graph_from
from .writers import HonestWriter, companies, told

MONEY = [
    document(f"m{n}", CURRENCY.sentence(f"Land{n}", f"C{n}"), cluster="near" if n < 40 else "far") for n in range(80)
]
GRAMMAR = GrammarLanguage()


def reading(documents: list[Document], wanted: int, taken: frozenset[str] = frozenset()) -> Harvest:
    return reading_questions(Library.of(documents), "train", wanted, 0, GRAMMAR, taken)


def choices(documents: list[Document], wanted: int) -> Harvest:
    rules = GraphRules(3, 2, 0)
    return knowledge_graph_questions(Library.of(documents), "train", wanted, rules, GRAMMAR)[Domain.MULTIPLE_CHOICE]


def test_single_facts_are_asked_in_the_direction_they_are_stated() -> None:
    documents = [
        document("a", CAPITAL_OF.sentence("France", "Paris")),
        document("b", CURRENCY.sentence("Chad", "XAF")),
    ]
    asked = {question.question: question.gold for question in reading(documents, 9).questions}
    assert asked == {
        "Which country has the capital Paris?": ("France",),
        "What is the currency of Chad?": ("XAF",),
    }


def test_ambiguous_and_self_answering_facts_are_counted_out() -> None:
    documents = [
        document("a", CURRENCY.sentence("Chad", "XAF")),
        document("b", CURRENCY.sentence("CHAD", "EUR")),
        document("c", "The people of Christmas Island is Christmas."),
        document("d", CURRENCY.sentence("Peru", "PEN")),
        document("e", CURRENCY.sentence("Peru", "PEN")),
    ]
    harvest = reading(documents, 9)
    assert [question.question for question in harvest.questions] == ["What is the currency of Peru?"]
    assert harvest.rejections == {SEVERAL: 2, GIVEN_AWAY: 1}


def test_wanted_and_taken_are_obeyed() -> None:
    first = reading(MONEY, 5).questions
    taken = frozenset(question.question for question in first)
    rest = reading(MONEY, 80, taken).questions
    assert len(first) == 5
    assert len(rest) == 75
    assert not taken & {question.question for question in rest}
    assert reading(MONEY, 5).questions == first
    assert reading([], 5).questions == reading(MONEY, 0).questions == []


def test_a_writer_model_asks_the_same_facts() -> None:
    facts = companies(4)
    language = ModelLanguage(HonestWriter(facts).chat(), 0)
    harvest = reading_questions(Library.of(told(facts)), "train", 99, 0, language)
    assert len(harvest.questions) == 2 * len(facts)  # each can be asked from either end
    for question in harvest.questions:
        (hop,) = question.provenance["hops"]
        assert question.gold == (hop["target"],)
        assert hop["source"] in question.question and hop["target"] not in question.question
        assert hop["sentence"].startswith(hop["target"] if hop["inverse"] else hop["source"])


def test_options_are_four_distinct_values_of_one_type_and_near_ones_first() -> None:
    for question in choices(MONEY, 80).questions:
        assert question.answer_kind is AnswerKind.LETTER
        place = LETTERS.index(question.gold[0])
        number = int(question.options[place][1:])
        assert question.question == f"What is the currency of Land{number}?"
        assert len(set(question.options)) == 4
        assert all((int(option[1:]) < 40) == (number < 40) for option in question.options)


def test_the_right_letter_is_spread_evenly() -> None:
    letters = Counter(question.gold[0] for question in choices(MONEY, 80).questions)
    assert sorted(letters) == list(LETTERS)
    assert max(letters.values()) < 32  # 20 expected of 80


def test_too_few_values_give_no_choice() -> None:
    harvest = choices(MONEY[:3], 9)
    assert harvest.questions == []
    assert harvest.rejections == {FEW_OPTIONS: 3}


def test_the_subject_is_no_option() -> None:
    names = ["A", "B", "C", "D", "E"]
    documents = [document(f"d{n}", f"The neighbour of {name} is {names[n - 1]}.") for n, name in enumerate(names)]
    for question in choices(documents, 9).questions:
        assert question.question[-2] not in question.options


@pytest.mark.parametrize(
    ("right", "others", "expected"),
    [
        (
            "1947",
            ["12 March 1947", "1950", "the late war", "March 1951"],
            {"1950", "March 1951"},
        ),  # may be the same day
        ("New York", ["New York City", "York", "Boston"], {"Boston"}),
        ("12 km", ["12 m", "15 km", "12.0 km"], {"15 km"}),
        ("Rome", ["ROME", "Ｒｏｍｅ", "Paris"], {"Paris"}),
    ],
)
def test_no_wrong_option_may_be_right(right: str, others: list[str], expected: set[str]) -> None:
    triples = [fact(f"S{n}", "r", value, "d") for n, value in enumerate([right, *others])]
    assert set(ValuePool(graph_from(triples)).wrong_options(0, 3, random.Random(0))) == expected


def test_a_dialogue_is_asked_for_its_last_word_and_corrected_values_come_first() -> None:
    talk = "\n".join(
        (
            f"Ana: {CALLING_CODE.sentence('Chad', '1')}",
            f"Ana: {CALLING_CODE.sentence('Peru', '51')}",
            f"Ben: No, the {CALLING_CODE.sentence('Chad', '235')[4:]}",
            f"Ben: {CALLING_CODE.sentence('PERU', '51')}",
        )
    )
    library = Library.of([document("talk", talk, "dialogue"), document("entry", talk)])
    chad, peru = dialogue_questions(library, "train", 9, 0, GRAMMAR).questions
    assert (chad.question, chad.gold, chad.difficulty) == (
        "In the dialogue, what is the calling code of Chad?",
        ("235",),
        2,
    )
    assert [hop["target"] for hop in chad.provenance["clues"]] == ["1"]
    assert (peru.gold, peru.difficulty, peru.provenance["clues"]) == (("51",), 1, [])
    assert len(dialogue_questions(library, "train", 1, 0, GRAMMAR).questions) == 1


def test_dialogues_may_ask_the_same_of_different_documents() -> None:
    talks = [document(f"t{n}", f"Ana: {CALLING_CODE.sentence('Chad', str(n))}", "dialogue") for n in (1, 2)]
    asked = dialogue_questions(Library.of(talks), "train", 9, 0, GRAMMAR).questions
    assert {question.gold for question in asked} == {("1",), ("2",)}


def test_dialogues_are_read_and_asked_by_a_writer_model() -> None:
    said = [("Chad", "has the code", "111", "talk"), ("Chad", "has the code", "235", "talk")]
    talk = document("talk", "Ana: Chad has the code 111. Ben: No, Chad has the code 235.", "dialogue")
    language = ModelLanguage(HonestWriter(said).chat(), 0)
    (question,) = dialogue_questions(Library.of([talk]), "train", 9, 0, language).questions
    assert (question.gold, question.difficulty) == (("235",), 2)
    assert "Chad" in question.question and "111" not in question.question
