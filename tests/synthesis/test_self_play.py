from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from tasks.corpus.grammar import CURRENCY, LARGEST_NEIGHBOUR
from tasks.corpus.library import Library
from tasks.errors import BudgetError
from tasks.generation.base import Completion, Sampling
from tasks.generation.scripted import ScriptedGenerator
from tasks.prompts import Proposal
from tasks.records import AnswerKind, Document, Domain, Finish, Question
from tasks.synthesis.closed_players import ClosedPlayers
from tasks.synthesis.players import Ask, Round
from tasks.synthesis.questions import Source
from tasks.synthesis.self_play import Claim, Play, Rules, Table, _Game, best, play
from tasks.tokenization import ChatTokenizer

from .examples import document

CHAD = document("chad", CURRENCY.sentence("Chad", "XAF"))
PERU = document("peru", CURRENCY.sentence("Peru", "PEN"))
NEAR = document("near", LARGEST_NEIGHBOUR.sentence("Chad", "Mali"))
FAR = document("far", CURRENCY.sentence("Mali", "XOF"))
RIGHT = "Question: What is the currency of Chad? Answer: XAF."
WRONG = "Question: What is the currency of Chad? Answer: PEN."
EASY = "Question: What is the currency of Mali? Answer: XOF."
HARD = "Question: What is the currency of the largest neighbour of Chad? Answer: XOF."
RULES = Rules(rounds=1, history_size=3, votes=3, blind_votes=0, max_answer_tokens=40, seed=0)


def says(answer: str) -> str:
    return f"The answer is {answer}."


def closed(tokenizer: ChatTokenizer, replies: Sequence[str | Completion], tokens: int = 128) -> ClosedPlayers:
    return ClosedPlayers(ScriptedGenerator(replies), tokenizer, Sampling(0.7, 0.95, 48), tokens)


def played(
    tokenizer: ChatTokenizer,
    replies: Sequence[str | Completion],
    documents: Sequence[Document],
    rules: Rules = RULES,
    wanted: int = 1,
) -> Play:
    """A game whose script is used up."""
    players = closed(tokenizer, replies)
    game = play(players, Library.of(documents), "train", wanted, rules)
    assert isinstance(players.generator, ScriptedGenerator)
    assert players.generator._next == len(replies)
    return game


def asked(game: Play) -> list[str]:
    return [f"{one.question} {one.gold[0]}" for one in game.harvest.questions]


@pytest.fixture
def everything_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Game, "_subset", lambda game, table, turn: tuple(map(game._library.get, table.documents)))


def test_agreement_verifies_a_question_and_the_gold_is_the_proposers(tokenizer: ChatTokenizer) -> None:
    game = played(tokenizer, [RIGHT, RIGHT, says("XAF"), says("PEN"), says("xaf"), "Verdict: incorrect."], [CHAD])
    (question,) = game.harvest.questions
    assert (question.question, question.gold) == ("What is the currency of Chad?", ("XAF",))
    assert (question.answer_kind, question.document_ids) == (AnswerKind.TEXT, ("chad",))
    assert question.provenance == {
        "kind": "self-play",
        "round": 1,
        "asked_for": "easy",
        "facts": [["currency", "chad"]],
        "votes": 3,
        "agreeing": 2,
        "solve_rate": 2 / 3,
    }
    assert game.harvest.rejections == {"asked before": 1}


def test_a_wrong_proposal_falls_by_the_votes(tokenizer: ChatTokenizer) -> None:
    game = played(tokenizer, [WRONG, "no form", *[says("XAF")] * 3, "Verdict: incorrect."], [CHAD])
    assert asked(game) == []
    assert game.harvest.rejections == {"unreadable proposal": 1, "too few solvers agree": 1}


def test_half_of_the_votes_is_no_majority(tokenizer: ChatTokenizer) -> None:
    replies = [RIGHT, "no form", says("XAF"), says("XAF"), says("PEN"), says("USD"), "incorrect", "incorrect"]
    game = played(tokenizer, replies, [CHAD], replace(RULES, votes=4))
    assert asked(game) == []
    assert game.harvest.rejections["too few solvers agree"] == 1


def test_the_verifier_may_accept_what_the_rule_refuses_and_is_asked_once(tokenizer: ChatTokenizer) -> None:
    game = played(tokenizer, [RIGHT, "no form", *[says("the XAF franc")] * 3, "Verdict: correct."], [CHAD])
    assert asked(game) == ["What is the currency of Chad? XAF"]


def test_a_cut_reply_counts_as_no_proposal_and_no_agreement(tokenizer: ChatTokenizer) -> None:
    cut = Completion((1,), RIGHT, Finish.TRUNCATED)
    assert played(tokenizer, [cut, cut], [CHAD]).harvest.rejections == {"unreadable proposal": 2}
    silent = Completion((1,), "<think> the currency", Finish.TRUNCATED)
    assert asked(played(tokenizer, [RIGHT, RIGHT, silent, silent, silent], [CHAD])) == []


@pytest.mark.usefixtures("everything_shown")
def test_rounds_grow_harder_remember_and_are_measured(tokenizer: ChatTokenizer) -> None:
    votes = [says("XOF")] * 3
    players = closed(tokenizer, [EASY, EASY, *votes, HARD, "no form", says("XOF"), says("XOF"), *[""] * 1])
    game = play(players, Library.of([NEAR, FAR]), "train", 2, replace(RULES, rounds=2))
    prompts = [tokenizer.decode(prompt).replace(" :", ":") for prompt in players.generator.prompts]  # type: ignore[attr-defined]
    assert "Earlier questions: none Propose an easy question." in prompts[0]
    assert "Earlier questions: What is the currency of Mali? Propose a hard question." in prompts[4]
    assert asked(game) == ["What is the currency of Mali? XOF"]
    easy, hard = game.rounds
    assert (easy.round, easy.proposed, easy.well_formed, easy.verified) == (1, 2, 1, 1)
    assert (easy.mean_solve_rate, easy.mean_verified_rate, easy.mean_answer_words) == (1.0, 1.0, 1.0)
    assert (hard.round, hard.proposed, hard.well_formed, hard.verified) == (2, 2, 1, 0)
    assert (hard.mean_solve_rate, hard.mean_verified_rate) == (2 / 3, None)  # a hard question needs every vote


@pytest.mark.usefixtures("everything_shown")
def test_the_history_forgets_the_oldest(tokenizer: ChatTokenizer) -> None:
    votes, rules = [says("XOF")] * 3, replace(RULES, rounds=3, history_size=1)
    players = closed(tokenizer, [EASY, *votes, HARD, *votes, "no form"])
    play(players, Library.of([NEAR, FAR]), "train", 2, rules)
    last = tokenizer.decode(players.generator.prompts[-1]).replace(" :", ":")  # type: ignore[attr-defined]
    assert "Earlier questions: What is the currency of the largest neighbour of Chad? Propose" in last


def test_a_verified_question_is_not_asked_again_and_its_claim_not_voted_on_twice(tokenizer: ChatTokenizer) -> None:
    rounds = replace(RULES, rounds=2)
    game = played(tokenizer, [RIGHT, *[says("XAF")] * 3, RIGHT], [CHAD], rounds)
    assert (len(asked(game)), game.harvest.rejections) == (1, {"asked before": 1})
    game = played(tokenizer, [WRONG, *[says("XAF")] * 3, "incorrect", WRONG], [CHAD], rounds)
    assert (asked(game), game.harvest.rejections) == ([], {"too few solvers agree": 1, "asked before": 1})


@pytest.mark.parametrize(
    ("proposal", "problem"),
    [
        (Proposal("What is the currency of Chad?", "Chad"), "the question gives its answer away"),
        (Proposal("What is the currency of Chad?", "…"), "answer empty or too long"),
        (Proposal("What is the currency of Chad?", "XAF " * 41), "answer empty or too long"),
        (Proposal("What is the currency of Mali?", "XAF"), "not about its documents"),
        (Proposal("What is it?", "XAF"), "not about its documents"),
    ],
)
def test_faults_of_a_proposal(tokenizer: ChatTokenizer, proposal: Proposal, problem: str) -> None:
    said = f"Question: {proposal.question} Answer: {proposal.answer}."
    game = played(tokenizer, [said, "no form"], [CHAD, PERU])
    assert game.harvest.rejections == {problem: 1, "unreadable proposal": 1}


@pytest.mark.parametrize(
    ("documents", "problem"),
    [
        ([NEAR, FAR], ""),
        (
            [NEAR, FAR, document("both", "Chad pays in XOF.")],
            "not hard: one document mentions question and answer",
        ),
        ([NEAR, document("far", CURRENCY.sentence("Togo", "XOF"))], "not hard: nothing links question and answer"),
        ([NEAR], "not hard: nothing links question and answer"),
    ],
)
def test_a_hard_proposal_spans_linked_documents(
    tokenizer: ChatTokenizer, documents: list[Document], problem: str
) -> None:
    proposal = Proposal("What is the currency of the largest neighbour of Chad?", "XOF")
    players = closed(tokenizer, [])
    assert players.fault(proposal, Ask(tuple(documents), (), Round(1, 2), "hard", 1)) == problem
    assert players.fault(proposal, Ask(tuple(documents), (), Round(0, 2), "easy", 1)) == ""


def test_every_solver_reads_the_evidence_in_other_company(tokenizer: ChatTokenizer) -> None:
    others = [document(f"o{n}", CURRENCY.sentence(f"N{n}", "PEN")) for n in range(30)]
    players = closed(tokenizer, [])
    game = _Game(players, Library.of([CHAD, *others]), "train", 1, replace(RULES, votes=4))
    claim = Claim(Table(("chad", "o1"), deque()), (CHAD,), verified("chad", 1.0))
    attempts = list(game._attempts(claim))
    assert len({attempt.documents for attempt in attempts}) == 4
    assert all(CHAD.text in attempt.documents and len(attempt.documents) > 3 for attempt in attempts)
    assert all(100 < players.solver_tokens(attempt) <= 128 for attempt in attempts)


def test_documents_join_over_the_rounds(tokenizer: ChatTokenizer) -> None:
    documents = [document(f"d{n}", "x") for n in range(6)]
    game = _Game(closed(tokenizer, []), Library.of(documents), "train", 1, RULES)
    table = Table(tuple(one.id for one in documents), deque())
    seen = [{one.id for _ in range(40) for one in game._subset(table, Round(n, 3))} for n in range(3)]
    assert seen == [{"d0", "d1", "d2"}, {"d0", "d1", "d2", "d3"}, {"d0", "d1", "d2", "d3", "d4", "d5"}]
    assert [len(game._subset(table, Round(n, 3))) for n in range(3)] == [2, 3, 4]
    assert Round(0, 1).joined_share == 1.0


def test_only_documents_of_the_split_and_of_readable_kinds_play(tokenizer: ChatTokenizer) -> None:
    unplayable = [
        document("held", CHAD.text, split="test"),
        document("talk", "What?", "dialogue"),
        document("long", CURRENCY.sentence("Chad", "XAF") * 40),
    ]
    game = played(tokenizer, [], unplayable, wanted=5)
    assert (game.harvest.questions, game.harvest.rejections, game.rounds) == ([], {}, ())
    assert played(tokenizer, [], []).harvest.questions == []


def test_a_spent_budget_ends_the_game_and_keeps_what_was_verified(tokenizer: ChatTokenizer) -> None:
    class Spent(ClosedPlayers):
        def propose(self, asks: Sequence[Ask], seed: str) -> Iterator[list[Proposal | None]]:
            if asks[0].turn.number == 1:
                raise BudgetError("spent")
            return super().propose(asks, seed)

    players = Spent(
        ScriptedGenerator([RIGHT, RIGHT, *[says("XAF")] * 3]), tokenizer, Sampling(0.7, 0.95, 48), prompt_tokens=128
    )
    game = play(players, Library.of([CHAD]), "train", 4, replace(RULES, rounds=3))
    assert (len(asked(game)), game.out_of_budget) == (1, True)
    assert [(record.proposed, record.verified) for record in game.rounds] == [(2, 1), (0, 0)]
    assert game.rounds[1].mean_solve_rate is None


def test_no_more_proposals_than_allowed_and_no_more_tables(tokenizer: ChatTokenizer) -> None:
    documents = [document(f"d{n}", CURRENCY.sentence(f"N{n}", "PEN") * 8) for n in range(9)]  # a table each
    game = played(tokenizer, ["no form"] * 6, documents, replace(RULES, rounds=2), wanted=3)
    assert [record.proposed for record in game.rounds] == [3, 3]  # 2 a question, over two rounds, at 3 of 9 tables


def verified(name: str, rate: float) -> Question:
    source = Source(Domain.READING_COMPREHENSION, "self_play", "train", 0)
    known = {"kind": "self-play", "solve_rate": rate}
    return source.question(name, "x", kind=AnswerKind.TEXT, evidence=["d"], difficulty=1, facts=[], provenance=known)


def test_of_too_many_questions_the_half_solved_ones_are_kept_in_their_order() -> None:
    questions = [verified(name, rate) for name, rate in zip("abcde", (1.0, 0.25, 1.0, 0.5, 0.75), strict=True)]
    assert [one.question for one in best(questions, 2)] in (["b", "d"], ["d", "e"])
    assert [one.question for one in best(questions, 3)] == ["b", "d", "e"]
    assert [one.question for one in best(questions, 4)] == ["a", "b", "d", "e"]
    assert best(questions, 9) == questions
    assert best([], 3) == []


def test_the_seed_decides(tokenizer: ChatTokenizer) -> None:
    library = Library.of([document(f"d{n}", CURRENCY.sentence(f"N{n}", "PEN")) for n in range(20)])
    tables = [
        [table.documents for table in _Game(closed(tokenizer, []), library, "train", 9, replace(RULES, seed=s)).tables]
        for s in (0, 0, 1)
    ]
    assert tables[0] == tables[1] != tables[2]
