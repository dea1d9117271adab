"""The game between models: a double that really reads; others lie, guess, agree with all, or write rubbish."""

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from tasks.corpus.library import Library
from tasks.errors import BudgetError
from tasks.generation.chat import Request, Unanswered
from tasks.generation.scripted import Line, ScriptedChat
from tasks.prompts import Proposal
from tasks.records import Document
from tasks.synthesis.model_players import (
    QUESTION_KINDS,
    Judged,
    ModelPlayers,
    Proposed,
    Solved,
    proposer_prompt,
    solver_prompt,
)
from tasks.synthesis.players import Ask, Round, Try
from tasks.synthesis.self_play import Play, Rules, play

from .examples import document

RULES = Rules(rounds=2, history_size=3, votes=4, blind_votes=4, max_answer_tokens=40, seed=0)
FACT = re.compile(r"The (\w+) of (\w+ \w+) is (\w+)\.")
SEATS = {
    "Harbour Ferries": "Nordsund",
    "Paper Mills": "Brackwater",
    "Glass Works": "Ostrelle",
    "Salt Company": "Velden",
}
LIBRARY = {
    name: f"The seat of {name} is {seat}. The product of {name} is {name.split()[0].lower()}."
    for name, seat in SEATS.items()
}
Script = Callable[[Request], Line]


def library(texts: dict[str, str] = LIBRARY) -> Library:
    documents: list[Document] = [document(name, text, "text") for name, text in texts.items()]
    return Library.of(documents)


def reading(request: Request) -> Line:
    """Proposes facts it sees, answers from the documents alone, compares letters."""
    facts = FACT.findall(request.prompt)
    if request.schema is Proposed:
        relation, name, value = facts[request.seed % len(facts)]
        return json.dumps({"question": f"What is the {relation} of {name}?", "answer": value})
    if request.schema is Solved:
        (wanted,) = re.findall(r"Question: What is the (\w+) of (\w+ \w+)\?", request.prompt)
        return json.dumps({"answer": next((value for *asked, value in facts if tuple(asked) == wanted), "unknown")})
    gold, answer = re.findall(r"Reference answer: (.*)\n<answer \w+>\n(.*)\n", request.prompt)[0]
    return json.dumps({"same": gold.lower() in answer.lower()})


def instead(schema: type, reply: Callable[[Request], Line]) -> Script:
    """A reader that plays one role otherwise."""
    return lambda request: reply(request) if request.schema is schema else reading(request)


def players(script: Script | list[Line], context_tokens: int = 464) -> tuple[ModelPlayers, ScriptedChat]:
    model = ScriptedChat(script, context_tokens=context_tokens, max_output_tokens=50)
    return ModelPlayers(model, temperature=0.7, top_p=0.95), model


def played(script: Script, rules: Rules = RULES, wanted: int = 8) -> Play:
    return play(players(script)[0], library(), "train", wanted, rules)


def test_a_model_that_reads_has_its_questions_verified() -> None:
    game = played(reading)
    assert game.harvest.questions
    for question in game.harvest.questions:
        relation, name = re.findall(r"What is the (\w+) of (\w+ \w+)\?", question.question)[0]
        assert question.gold == ((SEATS[name] if relation == "seat" else name.split()[0].lower()),)
        assert question.provenance["agreeing"] == question.provenance["votes"] == 4
        assert question.provenance["asked_for"] in QUESTION_KINDS
        assert question.provenance["facts"] == []
    assert set(game.harvest.rejections) <= {"asked before", "the question gives its answer away"}
    assert [record.mean_verified_rate for record in game.rounds if record.verified] == [1.0] * len(
        [record for record in game.rounds if record.verified]
    )


def test_a_lying_proposer_falls_by_the_solvers() -> None:
    lie = json.dumps({"question": "What is the seat of Paper Mills?", "answer": "Dunrigg"})
    game = played(instead(Proposed, lambda request: lie))
    assert not game.harvest.questions
    assert game.harvest.rejections["too few solvers agree"] == 1
    assert game.rounds[0].mean_solve_rate == 0.0


def test_a_lie_that_one_solver_guesses_falls_by_those_that_agree_on_the_truth() -> None:
    lie = json.dumps({"question": "What is the seat of Paper Mills?", "answer": "Dunrigg"})
    solvers = iter(["Dunrigg", *["Brackwater"] * 3])

    def script(request: Request) -> Line:
        if request.schema is Proposed:
            return lie
        return json.dumps({"answer": next(solvers)}) if request.schema is Solved else reading(request)

    game = played(script, replace(RULES, rounds=1), wanted=1)
    assert (game.harvest.questions, game.harvest.rejections["solvers agree on another answer"]) == ([], 1)


def test_a_verifier_that_agrees_with_everything_verifies_nothing() -> None:
    """Wrong answers agree with the lie; but so do those given without any document."""
    lie = json.dumps({"question": "What is the seat of Paper Mills?", "answer": "Dunrigg"})
    script: dict[type | None, Script] = {
        Proposed: lambda request: lie,
        Solved: lambda request: json.dumps({"answer": f"Town {request.seed}"}),
        Judged: lambda request: json.dumps({"same": True}),
    }
    game = played(lambda request: script[request.schema](request))
    assert not game.harvest.questions
    assert game.harvest.rejections["answered without documents"] == 1


def test_what_the_model_knows_anyway_is_no_question() -> None:
    known = json.dumps({"question": "What is the seat of Paper Mills?", "answer": "Brackwater"})

    def script(request: Request) -> Line:
        if request.schema is Proposed:
            return known
        return json.dumps({"answer": "Brackwater"}) if request.schema is Solved else reading(request)

    game = played(script)
    assert (game.harvest.questions, game.harvest.rejections["answered without documents"]) == ([], 1)


@pytest.mark.parametrize("reply", ["", "no JSON", "[]", "{}", '{"question": "What?"}', '{"question": 1, "answer": 2}'])
def test_unreadable_proposals_are_counted(reply: str) -> None:
    game = played(instead(Proposed, lambda request: reply))
    assert not game.harvest.questions
    assert game.harvest.rejections == {"unreadable proposal": 16}
    assert [(record.proposed, record.well_formed) for record in game.rounds] == [(8, 0), (8, 0)]


def test_solvers_that_cannot_be_reached_do_not_speak_against_a_question() -> None:
    game = played(instead(Solved, lambda request: Unanswered("no server")))
    assert not game.harvest.questions
    assert set(game.harvest.rejections) - {"asked before", "the question gives its answer away"} == {
        "too few solvers answer"
    }
    assert game.rounds[0].mean_solve_rate is None


def test_a_spent_budget_keeps_what_was_verified() -> None:
    asked = 0

    def script(request: Request) -> Line:
        nonlocal asked
        asked += 1
        if request.schema is Proposed and "harder" in request.prompt:
            raise BudgetError("spent")
        return reading(request)

    whole, cut = played(reading), played(script)
    first = [question for question in whole.harvest.questions if question.provenance["round"] == 1]
    assert cut.out_of_budget and not whole.out_of_budget
    assert cut.harvest.questions == first
    assert len(cut.rounds) == 2


def test_the_same_game_asks_the_same_so_that_a_journal_can_answer() -> None:
    games = [players(reading) for _ in range(2)]
    for one, _ in games:
        play(one, library(), "train", 8, RULES)
    first, second = (model.requests for _, model in games)
    assert first == second
    assert len({(request.prompt, request.seed) for request in first if request.schema is Solved}) == len(
        [request for request in first if request.schema is Solved]
    )


def test_kinds_of_question_rotate_over_tables_and_rounds() -> None:
    one, model = players(reading)
    play(one, library(), "train", 12, replace(RULES, rounds=3))
    named = [
        re.findall(r"Write one (\w+) question", request.prompt)[0]
        for request in model.requests
        if request.schema is Proposed
    ]
    assert set(named) == set(QUESTION_KINDS)
    assert [named[start] for start in (0, 8, 16)] == ["fact", "comparison", "temporal"]


def test_prompts_hold_the_documents_in_fences_and_fit_the_context() -> None:
    one, model = players(reading, context_tokens=364)
    play(one, library(), "train", 8, RULES)
    assert all(model.count(request.prompt) <= 250 for request in model.requests)
    assert all("<document" in request.prompt for request in model.requests if request.schema is Proposed)


def test_the_proposer_sees_what_it_must_surpass() -> None:
    game = played(reading)
    shown = [document("a", "The seat of Salt Company is Velden.", "text")]
    ask = Ask(tuple(shown), tuple(game.harvest.questions[:1]), Round(1, 2), "causal", 1)
    prompt = proposer_prompt(ask)
    assert game.harvest.questions[0].question in prompt and "harder" in prompt and "causal" in prompt
    assert "more than one" not in prompt and "more than one" in proposer_prompt(
        replace(ask, documents=(*shown, *shown))
    )
    assert "harder" not in proposer_prompt(replace(ask, history=()))


def test_a_history_that_does_not_fit_loses_its_oldest() -> None:
    first, second = played(reading).harvest.questions[:2]
    long = first.model_copy(update={"question": f"{'why ' * 300}?"})
    one, model = players(lambda request: "")
    shown = (document("a", "The seat of Salt Company is Velden.", "text"),)
    list(one.propose([Ask(shown, (long, second), Round(1, 2), "fact", 1)], "seed"))
    prompt = model.requests[0].prompt
    assert second.question in prompt and "why why" not in prompt


def test_a_solver_without_documents_is_not_told_of_any() -> None:
    assert "document" not in solver_prompt(Try((), "Where?"))


@pytest.mark.parametrize(
    ("question", "answer", "problem"),
    [
        ("What is the seat of Paper Mills?", "Brackwater", ""),
        ("Which founding document names the seat of Paper Mills?", "the charter", ""),
        ("According to the document, where are Paper Mills?", "Brackwater", "points"),
        ("Where, in this passage, are Paper Mills?", "Brackwater", "points"),
        ("What does Document 2 say of Paper Mills?", "Brackwater", "points"),
        ("What seat of Paper Mills has document 6bbec416?", "Brackwater", "points"),
        ("How long did the text of Paper Mills last?", "Brackwater", "points"),
        ("What is the seat of Paper Mills?", "Unknown", "no answer"),
    ],
)
def test_faults_that_models_make(question: str, answer: str, problem: str) -> None:
    one, _ = players([])
    found = one.fault(Proposal(question, answer), Ask((), (), Round(0, 1), "fact", 1))
    assert found.startswith(problem) and bool(found) == bool(problem)
