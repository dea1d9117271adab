import json
import random
from collections.abc import Callable

import pytest

from tasks.generation.base import Sampling
from tasks.generation.chat import Reply, Request, Unanswered
from tasks.generation.scripted import ScriptedChat
from tasks.generation.structured import Refused
from tasks.records import Finish
from tasks.synthesis.tables.answers import gold
from tasks.synthesis.tables.choosing import Chosen
from tasks.synthesis.tables.engine import LockedTable, definition
from tasks.synthesis.tables.templates import TEMPLATES, Choice
from tasks.synthesis.tables.wording import Asked, AsWritten, ModelWording, Put, Query, Reworded

from .tables import column

NAMES = ("Chad", "Mali", "Peru", "Oman")
TABLE = LockedTable([column("entity", *NAMES), column("Area (km)", "10", "20", "30", "45")])
SQL = "SELECT sum(\"Area (km)\") FROM facts WHERE entity IN ('Chad', 'Mali', 'Peru', 'Oman')"
SAMPLING = Sampling(0.7, 0.95, 256)


def total() -> Asked:
    template = next(one for one in TEMPLATES if one.name == "total")
    choice = Choice(NAMES, (column("Area (km)", "10", "20", "30", "45"),), random.Random(0))
    draft = template.draft(choice)
    assert draft is not None
    answer = gold(TABLE.result(draft.sql), draft.form)
    assert answer == ("105",)
    return Asked(template, Chosen(choice, ("d1", "d2")), draft, answer)


def script(question: str, sql: str) -> Callable[[Request], str]:
    return lambda request: json.dumps({"question": question} if request.schema is Reworded else {"sql": sql})


WORDS = "How many km do Chad, Mali, Peru and Oman cover together?"


def test_as_written_is_the_template_and_its_instruction() -> None:
    (put,) = AsWritten().put([total()], TABLE)
    assert isinstance(put, Put)
    assert put.text == 'What is the total of "Area (km)" over Chad, Mali, Peru and Oman? Answer with a whole number.'


def test_a_model_words_a_question_that_its_own_query_must_answer() -> None:
    model = ScriptedChat(script(WORDS, SQL))
    (put,) = ModelWording(model, SAMPLING, 0).put([total()], TABLE)
    assert put == Put(put.asked, f"{WORDS} Answer with a whole number.", SQL)  # type: ignore[union-attr]
    reword, query = model.requests
    assert (reword.schema, query.schema) == (Reworded, Query)
    assert total().draft.text in reword.prompt
    assert WORDS in query.prompt and definition(TABLE.columns) in query.prompt
    assert total().draft.sql not in query.prompt and "105" not in query.prompt  # the question alone


@pytest.mark.parametrize(
    ("question", "sql", "reason"),
    [
        ("How many km do Chad, Mali and Peru cover together?", SQL, "the model's words change what is asked"),
        (WORDS.replace("many", "many of the 9"), SQL, "the model's words change what is asked"),
        (WORDS, "SELECT * FROM read_text('secrets')", "the model's query is refused or fails"),
        (WORDS, "SELECT nothing FROM facts", "the model's query is refused or fails"),
        (WORDS, "DROP TABLE facts", "the model's query is refused or fails"),
    ],
)
def test_where_a_model_fails_the_template_asks_and_says_why(question: str, sql: str, reason: str) -> None:
    (put,) = ModelWording(ScriptedChat(script(question, sql)), SAMPLING, 0).put([total()], TABLE)
    (template,) = AsWritten().put([total()], TABLE)
    assert isinstance(put, Put) and isinstance(template, Put)
    assert (put.text, put.sql, put.refused) == (template.text, "", Refused(reason))


@pytest.mark.parametrize(
    "sql", ["SELECT sum(\"Area (km)\") FROM facts WHERE entity <> 'Chad'", 'SELECT entity, "Area (km)" FROM facts']
)
def test_a_query_with_another_answer_is_a_doubt_and_the_question_falls(sql: str) -> None:
    found = ModelWording(ScriptedChat(script(WORDS, sql)), SAMPLING, 0).put([total()], TABLE)
    assert list(found) == [Refused("the model's query gives another answer")]


def test_an_outage_does_not_decide_in_which_words_is_asked() -> None:
    silent = ScriptedChat([Unanswered("timeout"), json.dumps({"question": WORDS}), Unanswered("timeout")])
    found = list(ModelWording(silent, SAMPLING, 0).put([total()] * 2, TABLE))
    assert [isinstance(one, Refused) and one.reason for one in found] == ["unanswered"] * 2


def test_a_cut_reply_leaves_the_words_to_the_template() -> None:
    cut = ScriptedChat([Reply('{"question": "How', Finish.TRUNCATED)])
    (put,) = ModelWording(cut, SAMPLING, 0).put([total()], TABLE)
    assert isinstance(put, Put) and put.refused and put.refused.reason == "truncated"


def test_results_stay_in_order_around_refusals() -> None:
    replies = iter([WORDS, "nothing", WORDS, "nothing", WORDS, "nothing"])

    def reply(request: Request) -> str:
        return json.dumps({"question": next(replies)} if request.schema is Reworded else {"sql": SQL})

    found = list(ModelWording(ScriptedChat(reply), SAMPLING, 0).put([total()] * 6, TABLE))
    assert [isinstance(one, Put) and one.refused is None for one in found] == [True, False] * 3
    assert list(ModelWording(ScriptedChat([]), SAMPLING, 0).put([], TABLE)) == []


def test_a_wide_table_is_shown_in_part() -> None:
    others = [column(f"other {number}", *"1234") for number in range(100)]
    table = LockedTable([column("entity", *NAMES), *others, column("Area (km)", "10", "20", "30", "45")])
    model = ScriptedChat(script(WORDS, SQL))
    (put,) = ModelWording(model, SAMPLING, 0).put([total()], table)
    assert isinstance(put, Put)
    assert '"Area (km)" HUGEINT' in model.requests[1].prompt
    assert model.requests[1].prompt.count("other ") == 9


def test_questions_are_drawn_one_by_one() -> None:
    drawn = 0

    def endless() -> object:
        nonlocal drawn
        while True:
            drawn += 1
            yield total()

    found = ModelWording(ScriptedChat(script(WORDS, SQL)), SAMPLING, 0).put(endless(), TABLE)  # type: ignore[arg-type]
    assert isinstance(next(found), Put) and drawn <= 2
