"""Every template on four rows, its answer worked out by hand.

`given` has two different values, so that every condition is "above 1".
"""

import datetime as dt
import random
from collections.abc import Sequence

import pytest

from tasks.corpus.columns import Cell, Column
from tasks.synthesis.tables import templates
from tasks.synthesis.tables.answers import Form, gold
from tasks.synthesis.tables.corpus_table import ENTITY
from tasks.synthesis.tables.engine import Drop, LockedTable
from tasks.synthesis.tables.report_templates import REPORT_TEMPLATES
from tasks.synthesis.tables.templates import TEMPLATES, Choice, Draft, Need

from .tables import column, values

NAMES = ("Ada", "Bo", "Cy", "D'Or")
GIVEN = values("given", 1, 1, 5, 5)
ASKED = values("asked", 10, 20, 30, 45)
SOME = values("some", 10, None, 30, 40)
STEP = values("step", 10, 10, 10, 45)
DAYS = Column("day", "date", (dt.date(2020, 1, 5), dt.date(2020, 1, 5), dt.date(2021, 3, 1), dt.date(2021, 3, 1)))
MONTHS = Column("month", "month", ("2020-01", "2020-01", "2021-03", "2021-03"))
KIND = column("kind", "lake", "sea", "lake", "sea")
BY_NAME = {template.name: template for template in TEMPLATES}


def asked(name: str, *columns: Column, names: Sequence[str] = NAMES, seed: int = 1) -> tuple[Draft | None, object]:
    """The draft, and the answer over a table that has other rows too."""
    draft = BY_NAME[name].draft(Choice(tuple(names), columns, random.Random(seed)))
    others = {"text": "lake", "date": dt.date(2030, 1, 1), "month": "2030-01"}
    table = [Column(ENTITY, "text", (*names, "other"))]
    table += [Column(one.name, one.kind, (*one.values, others.get(one.kind, 10**6))) for one in columns]
    return draft, draft and gold(LockedTable(table).result(draft.sql), draft.form)


@pytest.mark.parametrize(
    ("name", "columns", "answer"),
    [
        ("lookup", [ASKED], ("10", "20", "30", "45")),
        ("largest", [ASKED], ("D'Or",)),
        ("largest", [GIVEN], Drop.NOT_UNIQUE),
        ("largest", [SOME], ("D'Or",)),
        ("total", [ASKED], ("105",)),
        ("total", [column("x", "1.5", "2.25", "0", "1")], ("4.75",)),
        ("highest value", [ASKED], ("45",)),
        ("lowest value", [ASKED], ("10",)),
        ("average", [ASKED], ("26.25",)),
        ("average", [SOME], ("26.67",)),  # of three; the question says so
        ("count above", [GIVEN], ("2",)),
        ("list above", [GIVEN], ("Cy", "D'Or")),
        ("top n", [ASKED], ("D'Or", "Cy")),
        ("top n", [STEP], Drop.NOT_UNIQUE),
        ("spread", [ASKED], ("35",)),
        ("earliest", [DAYS], ("2020-01",)),
        ("latest", [DAYS], ("2021-03",)),
        ("latest", [MONTHS], ("2021-03",)),
        ("list later", [DAYS], ("Cy", "D'Or")),
        ("count later", [MONTHS], ("2",)),
        ("total of those above", [GIVEN, ASKED], ("75",)),
        ("average of those above", [GIVEN, ASKED], ("37.50",)),
        ("total of those later", [DAYS, ASKED], ("75",)),
        ("largest of those above", [GIVEN, ASKED], ("D'Or",)),
        ("two conditions", [GIVEN, STEP], ("Cy",)),
        ("share of total", [ASKED], ("9.52",)),  # 10 of 105
        ("share above", [GIVEN], ("50.00",)),
        ("ratio", [GIVEN, ASKED], ("2.50",)),  # 75 / 30
        ("ratio", [GIVEN, values("zero", 0, 0, 1, 1)], Drop.EMPTY),  # 2 / 0
        ("difference of averages", [GIVEN, ASKED], ("22.50",)),  # 37.5 − 15
        ("largest group", [KIND, ASKED], ("sea",)),
        ("largest group", [KIND, values("even", 1, 2, 2, 1)], Drop.NOT_UNIQUE),
    ],
)
def test_the_query_answers_the_question(name: str, columns: list[Column], answer: object) -> None:
    draft, found = asked(name, *columns)
    assert draft is not None and all(name in draft.text for name in NAMES)
    assert (sorted(found) if isinstance(found, tuple) else found) == (
        sorted(answer) if isinstance(answer, tuple) else answer
    )
    assert ("Leave out those for which no value is given." in draft.instruction) == (SOME in columns)


def test_every_template_is_tested() -> None:
    cases = test_the_query_answers_the_question.pytestmark[0].args[1]
    groups = {"list group", "count group"}
    assert {case[0] for case in cases} | groups == set(BY_NAME)
    assert {template.difficulty for template in TEMPLATES} == {1, 2, 3}


def test_groups_are_counted_and_listed() -> None:
    draft, found = asked("list group", KIND)
    assert draft is not None
    assert draft.text == 'Which of Ada, Bo, Cy and D\'Or have "sea" as "kind"?' and found == ("Bo", "D'Or")
    assert asked("count group", KIND)[1] == ("2",)


def test_the_wording() -> None:
    draft, _ = asked("list above", column("Area", "1 km²", "1 km²", "1,500 km²", "1,500 km²"))
    assert draft is not None
    assert draft.text == 'Which of Ada, Bo, Cy and D\'Or have "Area" (in km²) above 1?'
    assert draft.instruction == "Answer with a list; if there is none, answer []."
    draft, _ = asked(
        "share of total", column("Sales (EUR)", "1", "2", "3", "4"), names=["Bosnia and Herzegovina", *"xyz"]
    )
    assert draft is not None
    assert draft.text == (
        'What share of the total "Sales (EUR)" of Bosnia and Herzegovina; x; y and z does Bosnia and Herzegovina have?'
    )


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("highest value", [values("same", 5, 5, 5, 5)]),
        ("count above", [values("same", 5, 5, 5, 5)]),
        ("count above", [values("none", None, None, None, None)]),
        ("total of those above", [values("one", 1, 1, 1, 2), ASKED]),  # one row is no total
        ("latest", [Column("day", "month", ("2020-01",) * 4)]),
        ("share of total", [values("debt", -5, 10, 20, 30)]),
        ("list group", [column("kind", "a", "a", "a", "a")]),
        ("largest group", [column("kind", "a", "a", "a", "a"), ASKED]),
    ],
)
def test_too_few_different_values_ask_nothing(name: str, columns: list[Column]) -> None:
    assert asked(name, *columns) == (None, None)


def test_a_few_lists_are_empty_on_purpose(monkeypatch: pytest.MonkeyPatch) -> None:
    choices = [Choice(NAMES, (ASKED,), random.Random(seed)) for seed in range(400)]
    drafts = [BY_NAME["list above"].draft(choice) for choice in choices]
    assert 5 <= sum("above 45?" in draft.text for draft in drafts if draft) <= 40  # EMPTY_SHARE is 5 %
    monkeypatch.setattr(templates, "EMPTY_SHARE", 1.0)
    draft, found = asked("list above", ASKED)
    assert draft is not None and "above 45?" in draft.text and found == ()
    assert asked("count above", ASKED)[1] != ("0",)


@pytest.mark.parametrize(
    ("column", "needs"),
    [
        (values("Population", 5, 7), {Need.NUMBER, Need.AMOUNT}),
        (values("Year", 1999, 2001), {Need.NUMBER}),
        (column("Share", "5%", "7%"), {Need.NUMBER}),
        (DAYS, {Need.DATE}),
        (MONTHS, {Need.DATE}),
        (KIND, {Need.GROUP}),
        (column("City", "Ulm", "Bonn"), set()),
        (column("Code", "007", "007", "008", "008"), set()),
    ],
)
def test_what_columns_are_good_for(column: Column, needs: set[Need]) -> None:
    assert {need for need in Need if need.admits(column)} == needs


def test_the_tiny_profile_speaks_its_own_words() -> None:
    choice = Choice(("Chad", "Mali"), (values("provinces", 3, 8),), random.Random(0))
    drafts = [template.draft(choice) for template in REPORT_TEMPLATES[:2]]
    assert [draft and draft.text for draft in drafts] == [
        "What is the total number of provinces of Chad and Mali?",
        "What is the highest number of provinces of Chad and Mali?",
    ]
    assert all(draft and draft.instruction == "" and draft.form is Form.INTEGER for draft in drafts)
    same: tuple[Cell, ...] = (3, 3)
    assert REPORT_TEMPLATES[1].draft(Choice(("a", "b"), (values("m", *same),), random.Random(0))) is None
