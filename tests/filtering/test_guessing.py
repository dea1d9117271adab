"""Guess baselines by hand."""

import pytest

from tasks.filtering.guessing import answer_shares, guess_rate, guessable, names_its_answer
from tasks.records import AnswerKind, Domain, Question
from tests.filtering.builders import item, question


def test_multiple_choice_is_one_in_the_options() -> None:
    asked = question(gold=("B",), kind=AnswerKind.LETTER, options=("Rome", "Oslo", "Bern"))
    assert guess_rate(item(asked)) == pytest.approx(1 / 3)


def test_text_is_the_share_of_the_same_place_in_sentences() -> None:
    documents = (
        "The capital of France is Paris. The capital of Norway is Oslo.",
        "Lima is the capital of Peru. The currency of Peru is sol. The capital of France is Paris.",
    )
    assert guess_rate(item(question(), documents=documents)) == pytest.approx(2 / 4)


def test_numbers_of_a_table() -> None:
    table = "Yearly report:\n| Chad | languages | 3 |\n| Mali | languages | 5 |\n| Mali | provinces | 3 |"
    asked = question(gold=("5",), kind=AnswerKind.NUMBER)
    assert guess_rate(item(asked, documents=(table,))) == pytest.approx(1 / 2)
    both = question(gold=("3",), kind=AnswerKind.NUMBER)  # a place of its own in each measure
    assert guess_rate(item(both, documents=(table,))) == pytest.approx(2 / 3)


def test_a_sum_is_not_in_the_documents() -> None:
    asked = question(gold=("8",), kind=AnswerKind.NUMBER)
    assert guess_rate(item(asked, documents=("| Chad | languages | 3 |\n| Mali | languages | 5 |",))) == 0.0


@pytest.mark.parametrize(
    ("gold", "kind", "text", "rate"),
    [
        (("Ada Byron",), AnswerKind.TEXT, "Then Ada Byron met Charles Babbage and Mary Shelley.", 1 / 3),
        (("red",), AnswerKind.TEXT, "red or blue", 1 / 3),
        (("7",), AnswerKind.NUMBER, "It cost 7 in 1990, 7 in 1991.", 2 / 4),
        (("7",), AnswerKind.NUMBER, "", 0.0),
    ],
)
def test_any_text_without_fact_sentences(gold: tuple[str, ...], kind: AnswerKind, text: str, rate: float) -> None:
    assert guess_rate(item(question(gold=gold, kind=kind), documents=(text,))) == pytest.approx(rate)


def test_yes_or_no_is_a_coin() -> None:
    assert guess_rate(item(question(gold=("yes",), kind=AnswerKind.YES_NO), documents=("No. No. No.",))) == 0.5


def test_lists_of_no_or_several_elements_are_not_guessed() -> None:
    for gold in ((), ("Paris", "Oslo")):
        assert guess_rate(item(question(gold=gold, kind=AnswerKind.LIST))) == 0.0


def test_answer_shares_leave_the_question_itself_out() -> None:
    def numeric(name: str, gold: str) -> object:
        return question(name, domain=Domain.CORPUS_NUMERIC, gold=(gold,), kind=AnswerKind.NUMBER)

    asked = [numeric("a", "2"), numeric("b", "2"), numeric("c", "3"), question("alone")]
    letter = question("letter", gold=("A",), kind=AnswerKind.LETTER)
    assert answer_shares([*asked, letter]) == {"a": 0.5, "b": 0.5, "c": 0.0, "alone": 0.0}  # type: ignore[list-item]


def choice(
    name: str, letter: str = "A", options: tuple[str, ...] = ("Rome", "Oslo", "Bern", "Lima"), text: str = "?"
) -> Question:
    return question(name, text=text, gold=(letter,), kind=AnswerKind.LETTER, options=options)


class TestGuessable:
    def letters(self, right: int, wrong: int) -> list[Question]:
        """The first is the longest option; letters go round."""
        long = ("Constantinople", "Oslo", "Bern", "Lima")
        rounds = [long[shift:] + long[:shift] for shift in range(4)]
        golds = [*["Constantinople"] * right, *["Oslo"] * wrong]
        return [choice(f"q{n}", "ABCD"[rounds[n % 4].index(gold)], rounds[n % 4]) for n, gold in enumerate(golds)]

    def test_only_the_surplus_of_longest_options_goes(self) -> None:
        """Luck: 100 / 4 + 2.33 · √(100 · 3 / 16) = 35.09, so 35 may stay."""
        assert guessable(self.letters(35, 65)) == frozenset()
        dropped = guessable(self.letters(60, 40))
        assert len(dropped) == 25
        assert dropped <= {f"q{number}" for number in range(60)}

    def test_a_favourite_letter(self) -> None:
        always = [choice(f"q{number}", "B") for number in range(16)]  # 4 + 2.33 · √3 = 8.04
        assert len(guessable(always)) == 8

    def test_an_answer_may_be_right_for_half_of_a_domain(self) -> None:
        def numbers(twos: int, others: int) -> list[Question]:
            golds = [*["2"] * twos, *(str(10 + number) for number in range(others))]
            return [question(f"q{n}", gold=(gold,), kind=AnswerKind.NUMBER) for n, gold in enumerate(golds)]

        assert guessable(numbers(61, 39)) == frozenset()  # 50 + 2.33 · 5 = 61.65
        assert len(guessable(numbers(90, 10))) == 29

    def test_a_few_questions_prove_nothing(self) -> None:
        assert guessable([question("a"), question("b")]) == frozenset()
        assert guessable([choice("a")]) == frozenset()
        assert guessable([]) == frozenset()

    def test_splits_and_domains_are_counted_apart(self) -> None:
        train = [question(f"a{number}") for number in range(5)]  # 2.5 + 2.33 · √1.25 = 5.1
        test = [question(f"t{number}", split="test") for number in range(5)]
        other = [question(f"o{number}", domain=Domain.MULTI_HOP) for number in range(5)]
        assert guessable([*train, *test, *other]) == frozenset()
        assert len(guessable([question(f"a{number}") for number in range(15)])) == 3  # 7.5 + 2.33 · √3.75 = 12.01

    def test_the_same_ones_go_whatever_the_order(self) -> None:
        asked = self.letters(60, 40)
        assert guessable(asked) == guessable(asked[::-1])

    @pytest.mark.parametrize(
        ("text", "gold", "named"),
        [
            ("Which country has Paris as its capital?", "Paris", True),
            ("which is it, Paris or Oslo?", "Paris", False),  # two names: a guess is right half the time
            ("What is the capital of Paris County?", "Paris", False),
            ("What is the capital?", "Paris", False),
            ("Is it red?", "red", True),
        ],
    )
    def test_a_question_that_names_its_answer(self, text: str, gold: str, named: bool) -> None:
        assert names_its_answer(question(text=text, gold=(gold,))) is named
        assert guessable([question(text=text, gold=(gold,))]) == (frozenset({"q"}) if named else frozenset())

    def test_an_option_that_the_question_names(self) -> None:
        assert names_its_answer(choice("a", "B", text="Where in Oslo?"))
        assert not names_its_answer(choice("a", "B", text="Is Oslo north of Rome?"))
        assert not names_its_answer(choice("a", "B", text="Where in Bern?"))

    def test_numbers_and_lists_may_stand_in_the_question(self) -> None:
        assert not names_its_answer(question(text="Of 3 rivers, how many?", gold=("3",), kind=AnswerKind.NUMBER))
        assert not names_its_answer(question(text="Which of red?", gold=("red",), kind=AnswerKind.LIST))
