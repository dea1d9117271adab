from collections import Counter

from tasks.corpus.grammar import CALLING_CODE, CAPITAL_OF, CURRENCY, LETTERS
from tasks.records import AnswerKind
from tasks.synthesis.dialogues import dialogue_questions
from tasks.synthesis.facts import choice_questions, reading_questions

from .examples import document

MONEY = [
    document(f"m{n}", CURRENCY.sentence(f"Land{n}", f"C{n}"), cluster="near" if n < 40 else "far") for n in range(80)
]


def test_single_facts_are_asked_in_the_direction_they_are_stated() -> None:
    documents = [
        document("a", CAPITAL_OF.sentence("France", "Paris")),
        document("b", CURRENCY.sentence("Chad", "XAF")),
    ]
    asked = {question.question: question.gold for question in reading_questions(documents, "train", 9, 0).questions}
    assert asked == {
        "Which country has the capital Paris?": ("France",),
        "What is the currency of Chad?": ("XAF",),
    }


def test_ambiguous_and_self_answering_facts_are_counted_out() -> None:
    documents = [
        document("a", CURRENCY.sentence("Chad", "XAF")),
        document("b", CURRENCY.sentence("CHAD", "EUR")),
        document("c", "The people of Christmas Island is Christmas Island."),
        document("d", CURRENCY.sentence("Peru", "PEN")),
        document("e", CURRENCY.sentence("Peru", "PEN")),
    ]
    harvest = reading_questions(documents, "train", 9, 0)
    assert [question.question for question in harvest.questions] == ["What is the currency of Peru?"]
    assert harvest.rejections == {"the fact has several answers": 2, "the question gives its answer away": 1}


def test_wanted_and_taken_are_obeyed() -> None:
    first = reading_questions(MONEY, "train", 5, 0).questions
    taken = frozenset(question.question for question in first)
    rest = reading_questions(MONEY, "train", 80, 0, taken).questions
    assert len(first) == 5
    assert len(rest) == 75
    assert not taken & {question.question for question in rest}


def test_options_are_four_distinct_values_of_one_type_and_near_ones_first() -> None:
    for question in choice_questions(MONEY, "train", 80, 0).questions:
        assert question.answer_kind is AnswerKind.LETTER
        place = LETTERS.index(question.gold[0])
        number = int(question.options[place][1:])
        assert question.question == f"What is the currency of Land{number}?"
        assert len(set(question.options)) == 4
        assert all((int(option[1:]) < 40) == (number < 40) for option in question.options)


def test_the_right_letter_is_spread_evenly() -> None:
    letters = Counter(question.gold[0] for question in choice_questions(MONEY, "train", 80, 0).questions)
    assert sorted(letters) == list(LETTERS)
    assert max(letters.values()) < 32  # 20 expected of 80


def test_too_few_values_give_no_choice() -> None:
    harvest = choice_questions(MONEY[:3], "train", 9, 0)
    assert harvest.questions == []
    assert harvest.rejections == {"fewer than four options": 3}


def test_the_subject_is_no_option() -> None:
    names = ["A", "B", "C", "D", "E"]
    documents = [document(f"d{n}", f"The neighbour of {name} is {names[n - 1]}.") for n, name in enumerate(names)]
    for question in choice_questions(documents, "train", 9, 0).questions:
        assert question.question[-2] not in question.options


def test_a_dialogue_is_asked_for_its_last_word_and_corrected_values_come_first() -> None:
    talk = "\n".join(
        (
            f"Ana: {CALLING_CODE.sentence('Chad', '1')}",
            f"Ana: {CALLING_CODE.sentence('Peru', '51')}",
            f"Ben: No, the {CALLING_CODE.sentence('Chad', '235')[4:]}",
            f"Ben: {CALLING_CODE.sentence('PERU', '51')}",
        )
    )
    harvest = dialogue_questions([document("talk", talk, "dialogue"), document("entry", talk)], "train", 9, 0)
    chad, peru = harvest.questions
    assert (chad.question, chad.gold, chad.difficulty) == (
        "In the dialogue, what is the calling code of Chad?",
        ("235",),
        2,
    )
    assert (peru.gold, peru.difficulty, len(peru.provenance["sentences"])) == (("51",), 1, 2)
    assert len(dialogue_questions([document("talk", talk, "dialogue")], "train", 1, 0).questions) == 1
