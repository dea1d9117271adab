import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.corpus.library import Library
from tasks.corpus.names import key
from tasks.generation.base import Sampling
from tasks.generation.scripted import ScriptedChat
from tasks.generation.structured import MALFORMED
from tasks.records import Document, Finish, Verdict
from tasks.rewards.rules import check
from tasks.synthesis.questions import IN_PLAIN_WORDS, Harvest
from tasks.synthesis.tables import asking
from tasks.synthesis.tables.asking import NO_ROOM, NO_TABLE, Language, Rules, corpus_questions
from tasks.synthesis.tables.readers import LayoutReader, ReportReader
from tasks.synthesis.tables.report_templates import REPORT_TEMPLATES
from tasks.synthesis.tables.templates import TEMPLATES
from tasks.synthesis.tables.wording import AsWritten, ModelWording

from .examples import document, reported

RULES = Rules(evidence_tokens=1000, count=lambda text: len(text.split()), seed=0)
CLOSED = Language(REPORT_TEMPLATES, AsWritten())
OPEN = Language(TEMPLATES, AsWritten())


def ask_reports(documents: list[Document], wanted: int, rules: Rules = RULES) -> Harvest:
    return corpus_questions(Library.of(documents), "train", wanted, rules, ReportReader(), CLOSED)


def countries(number: int) -> list[Document]:
    kinds = ("coastal", "landlocked", "island")
    return [
        document(
            f"c{index:02}",
            f"# Land{index:02}\n\nPopulation: {1000 + index * index:,}\nArea (km): {7 * index % 50}.5\n"
            f"Founded: 19{50 + index % 40}-0{1 + index % 9}-11\nKind: {kinds[index % 3]}",
            "text",
        ).model_copy(update={"source": f"c{index:02}"})
        for index in range(number)
    ]


def _names(text: str) -> tuple[str, ...]:
    return tuple(sorted(text.rpartition(" of ")[2].rstrip("?").replace(" and ", ", ").split(", ")))


def test_the_tiny_profile_asks_for_all_totals_of_two() -> None:
    documents = [reported("r1", "bridges", A=3, B=5, C=3), reported("r2", "bridges", D=7, E=1)]
    harvest = ask_reports(documents, 500)
    by_text = {question.question: question for question in harvest.questions}
    assert len(by_text) == len(harvest.questions)
    golds = {_names(text): question for text, question in by_text.items() if "total" in text}
    assert {names: question.gold for names, question in golds.items()} == {
        ("A", "B"): ("8",), ("A", "C"): ("6",), ("A", "D"): ("10",), ("A", "E"): ("4",), ("B", "C"): ("8",),
        ("B", "D"): ("12",), ("B", "E"): ("6",), ("C", "D"): ("10",), ("C", "E"): ("4",), ("D", "E"): ("8",),
    }  # fmt: skip
    assert set(golds["A", "D"].document_ids) == {"r1", "r2"}
    assert golds["A", "B"].document_ids == ("r1",)
    assert golds["A", "D"].provenance["facts"][0][0] == "bridges"
    assert harvest.rejections["the chosen rows have too few different values"] > 0
    assert not any(text.endswith(("of A and C?", "of C and A?")) and "highest" in text for text in by_text)


def test_no_or_too_little_to_read_gives_no_question() -> None:
    assert ask_reports([], 5).questions == []
    assert ask_reports([reported("r", "m", A=1)], 5).questions == []
    assert ask_reports([reported("r", "m", A=1, B=2)], 0).questions == []
    other = reported("r", "m", A=1, B=2).model_copy(update={"split": "test"})
    assert ask_reports([other], 5).questions == []


@pytest.fixture(scope="module")
def harvest() -> Harvest:
    return corpus_questions(Library.of(countries(30)), "train", 150, RULES, LayoutReader(), OPEN)


def test_why_nothing_can_be_asked_is_counted() -> None:
    assert +ask_reports([reported("r", "m", A=1)], 5).rejections == {NO_TABLE: 1}  # one row is no table
    short = Rules(evidence_tokens=1, count=RULES.count, seed=0)
    assert +ask_reports([reported("r", "m", A=1, B=2)], 5, short).rejections == {NO_ROOM: 1}
    nameless = [document(name, "Area: 5\nRoads: 7\nPorts: 1", "text") for name in ("a", "b")]
    harvest = corpus_questions(Library.of(nameless), "train", 5, RULES, LayoutReader(), OPEN)
    assert (harvest.questions, harvest.rejections[NO_TABLE]) == ([], 1)
    assert ask_reports([reported("r", "m", A=1, B=2)], 5).rejections.keys().isdisjoint({NO_ROOM, NO_TABLE})


def test_real_documents_are_asked_by_all_templates_that_fit(harvest: Harvest) -> None:
    asked = {question.provenance["template"] for question in harvest.questions}
    assert len(harvest.questions) == 150
    assert asked == {template.name for template in TEMPLATES}
    assert {question.difficulty for question in harvest.questions} == {1, 2, 3}
    assert len({question.id for question in harvest.questions}) == 150


def test_a_question_names_what_it_is_about_and_its_documents_state_it(harvest: Harvest) -> None:
    texts = {one.id: one.text for one in countries(30)}
    for question in harvest.questions:
        asked = {subject for _, subject in question.provenance["facts"]}
        assert len(question.document_ids) >= 2
        evidence = " ".join(texts[name] for name in question.document_ids).casefold()
        assert all(subject in question.question.casefold() and subject in evidence for subject in asked)


def test_the_reward_accepts_every_gold_answer_and_no_other(harvest: Harvest) -> None:
    for question in harvest.questions:
        right = f"The answer is {', '.join(reversed(question.gold)) or 'none'}."
        assert check(right, Finish.FINISHED, question) is Verdict.CORRECT
        wrong = f"The answer is {', '.join((*question.gold, '77777'))}."
        assert check(wrong, Finish.FINISHED, question) is Verdict.WRONG


def test_equal_seeds_ask_equal_questions() -> None:
    library = Library.of(countries(12))
    first, second, other = (
        corpus_questions(library, "train", 20, Rules(1000, len, seed), LayoutReader(), OPEN) for seed in (1, 1, 2)
    )
    assert first == second != other


def test_evidence_fits_the_context() -> None:
    size = len(countries(1)[0].text.split())
    for documents in (2, 3):
        rules = Rules(documents * size, RULES.count, 0)
        found = corpus_questions(Library.of(countries(20)), "train", 30, rules, LayoutReader(), OPEN)
        assert found.questions and max(len(question.document_ids) for question in found.questions) == documents
    rules = Rules(size, RULES.count, 0)
    assert corpus_questions(Library.of(countries(20)), "train", 5, rules, LayoutReader(), OPEN).questions == []


def test_one_document_is_asked_alone_only_if_it_is_the_only_one() -> None:
    table = "City | Schools\nUlm | 12\nBonn | 7\nBad Orb | 1"
    alone = corpus_questions(Library.of([document("a", table, "text")]), "train", 5, RULES, LayoutReader(), OPEN)
    assert alone.questions and all(question.document_ids == ("a",) for question in alone.questions)
    more = document("b", "City | Schools\nJena | 3\nHof | 4\nCelle | 9", "text")
    both = corpus_questions(Library.of([document("a", table, "text"), more]), "train", 5, RULES, LayoutReader(), OPEN)
    assert both.questions and all(set(question.document_ids) == {"a", "b"} for question in both.questions)


def test_a_large_library_is_asked_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "BLOCK", 10)
    found = corpus_questions(Library.of(countries(30)), "train", 30, RULES, LayoutReader(), OPEN)
    blocks = [{int(name[1:]) // 10 for name in question.document_ids} for question in found.questions]
    assert [sum(block == {number} for block in blocks) for number in range(3)] == [10, 10, 10]


def test_names_that_a_list_cannot_hold_are_not_listed() -> None:
    rows = "\n".join(f"Korea, Part {index} | {index}" for index in range(12))
    documents = [document(name, f"Name | Size\n{rows.replace('Part', name)}", "text") for name in ("x", "y")]
    found = corpus_questions(Library.of(documents), "train", 40, RULES, LayoutReader(), OPEN)
    assert found.rejections["the reward does not know the gold answer when it sees it"] > 0
    assert all("Korea" not in gold for one in found.questions if one.answer_kind == "list" for gold in one.gold)


@settings(max_examples=8, deadline=None)
@given(st.dictionaries(st.text("aA'\";-%_", min_size=1, max_size=5), st.integers(0, 99), min_size=2, max_size=5))
def test_names_are_data_in_sql(counts: dict[str, int]) -> None:
    folded = {key(name): count for name, count in counts.items()}
    text = "\n".join(f"| {name} | m | {count} |" for name, count in folded.items())
    for question in ask_reports([document("d", text, "report")], 3).questions:
        asked = [folded[subject] for _, subject in question.provenance["facts"]]
        assert question.gold == (str(sum(asked) if "total" in question.question else max(asked)),)


def test_an_overruled_document_is_evidence_too_and_the_question_says_who_counts() -> None:
    rows = ("City | Roads\nUlm | 5\nBonn | 6", "City | Roads\nUlm | 7\nJena | 9")
    documents = [document(f"d{year}", f"Report of {year}\n\n{text}", "text") for year, text in enumerate(rows, 2020)]
    found = corpus_questions(Library.of(documents), "train", 30, RULES, LayoutReader(), OPEN)
    assert found.questions
    for question in found.questions:
        assert set(question.document_ids) == {"d2020", "d2021"}
        assert ("the latest one counts" in question.question) is ("Ulm" in question.question)
    totals = [one for one in found.questions if one.provenance["template"] == "total" and "Jena" in one.question]
    assert [one.gold for one in totals if "Bonn" not in one.question] == [("16",)]  # 7 of Ulm, not 5, and 9


def test_a_writer_that_fails_is_asked_about_no_more_than_is_wanted_and_the_template_speaks() -> None:
    chat = ScriptedChat(lambda _: "no words")
    wording = ModelWording(chat, Sampling(0.0, 1.0, 64), 0)
    library = Library.of(countries(20))
    harvest = corpus_questions(library, "train", 5, RULES, LayoutReader(), Language(TEMPLATES, wording))
    plain = corpus_questions(library, "train", 5, RULES, LayoutReader(), OPEN)
    assert [question.question for question in harvest.questions] == [question.question for question in plain.questions]
    assert {question.provenance["plain_words"] for question in harvest.questions} == {MALFORMED}
    assert harvest.rejections[f"{IN_PLAIN_WORDS}: {MALFORMED}"] == 5
    assert len(chat.requests) == 10  # each once more, to be repaired
