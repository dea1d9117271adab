import random
from collections import deque

import pytest

from tasks.corpus.grammar import CURRENCY, LARGEST_NEIGHBOUR
from tasks.generation.base import Completion, Sampling
from tasks.generation.scripted import ScriptedGenerator
from tasks.prompts import Proposal
from tasks.records import AnswerKind, Document, Domain, Finish
from tasks.synthesis.questions import Source
from tasks.synthesis.self_play import Round, Rules, SelfPlay, Table, fault, read_claims, seat
from tasks.tokenization import ChatTokenizer

from .examples import document

CHAD = document("chad", CURRENCY.sentence("Chad", "XAF"))
PERU = document("peru", CURRENCY.sentence("Peru", "PEN"))
RIGHT = "Question: What is the currency of Chad? Answer: XAF."
WRONG = "Question: What is the currency of Chad? Answer: PEN."


def rules(rounds: int = 1, votes: int = 3, history: int = 3, tokens: int = 128) -> Rules:
    return Rules(rounds, history, votes, tokens, Sampling(0.7, 0.95, 48), seed=0)


def says(answer: str) -> str:
    return f"The answer is {answer}."


def play(
    tokenizer: ChatTokenizer,
    replies: list[str | Completion],
    documents: list[Document],
    game: Rules,
    wanted: int,
) -> tuple[list[str], dict[str, int], ScriptedGenerator]:
    generator = ScriptedGenerator(replies)
    harvest = SelfPlay(generator, tokenizer, game).play(documents, "train", wanted)
    return [f"{one.question} {one.gold[0]}" for one in harvest.questions], dict(harvest.rejections), generator


def test_agreement_verifies_a_question_and_the_gold_is_the_proposers(tokenizer: ChatTokenizer) -> None:
    generator = ScriptedGenerator([RIGHT, RIGHT, says("XAF"), says("PEN"), says("xaf"), "Verdict: incorrect."])
    harvest = SelfPlay(generator, tokenizer, rules()).play([CHAD], "train", 1)
    (question,) = harvest.questions
    assert (question.question, question.gold) == ("What is the currency of Chad?", ("XAF",))
    assert (question.answer_kind, question.document_ids) == (AnswerKind.TEXT, ("chad",))
    assert question.provenance == {
        "kind": "self-play",
        "round": 1,
        "wanted_difficulty": "easy",
        "facts": [["currency", "chad"]],
        "votes": 3,
        "agreeing": 2,
    }
    assert harvest.rejections == {"asked before": 1}


def test_a_wrong_proposal_falls_by_the_votes(tokenizer: ChatTokenizer) -> None:
    votes = [says("XAF")] * 3
    replies = [WRONG, "no form", *votes, "Verdict: incorrect."]
    assert play(tokenizer, replies, [CHAD], rules(), 1)[:2] == (
        [],
        {"unreadable proposal": 1, "too few solvers agree": 1},
    )


def test_half_of_the_votes_is_no_majority(tokenizer: ChatTokenizer) -> None:
    replies = [RIGHT, "no form", says("XAF"), says("XAF"), says("PEN"), says("USD"), "incorrect", "incorrect"]
    questions, rejections, _ = play(tokenizer, replies, [CHAD], rules(votes=4), 1)
    assert questions == []
    assert rejections["too few solvers agree"] == 1


def test_the_verifier_model_may_accept_what_the_rule_refuses_and_is_asked_once(
    tokenizer: ChatTokenizer,
) -> None:
    replies = [RIGHT, "no form", *[says("the XAF franc")] * 3, "Verdict: correct."]
    questions, _, generator = play(tokenizer, replies, [CHAD], rules(), 1)
    assert questions == ["What is the currency of Chad? XAF"]
    assert len(generator.prompts) == 1 + 3 + 1


def test_a_cut_reply_counts_as_no_proposal_and_no_vote(tokenizer: ChatTokenizer) -> None:
    cut = Completion((1,), RIGHT, Finish.TRUNCATED)
    assert play(tokenizer, [cut, cut], [CHAD], rules(), 1)[1] == {"unreadable proposal": 2}
    silent = Completion((1,), "<think> the currency", Finish.TRUNCATED)
    assert play(tokenizer, [RIGHT, RIGHT, silent, silent, silent], [CHAD], rules(), 1)[0] == []


ONE = "not hard: one document mentions question and answer"
NO_LINK = "not hard: nothing links question and answer"
NEAR = document("near", LARGEST_NEIGHBOUR.sentence("Chad", "Mali"))
FAR = document("far", CURRENCY.sentence("Mali", "XOF"))
EASY = "Question: What is the currency of Mali? Answer: XOF."
HARD = "Question: What is the currency of the largest neighbour of Chad? Answer: XOF."


def test_rounds_grow_harder_and_remember(tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "subset", lambda self, turn, rng: self.documents)
    votes = [says("XOF")] * 3
    replies = [EASY, *votes, HARD, *votes, HARD, *votes]
    questions, rejections, generator = play(tokenizer, replies, [NEAR, FAR], rules(rounds=3, history=1), 1)
    asked = [tokenizer.decode(prompt).replace(" :", ":") for prompt in generator.prompts]
    assert "Earlier questions: none Propose an easy question." in asked[0]
    assert "Earlier questions: What is the currency of Mali? Propose a hard question." in asked[4]
    assert "Earlier questions: What is the currency of the largest neighbour of Chad? Propose a" in asked[8]
    assert questions == ["What is the currency of Mali? XOF"]  # one was wanted
    assert rejections == {"asked before": 1}


def test_a_hard_question_needs_every_vote(tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "subset", lambda self, turn, rng: self.documents)
    monkeypatch.setattr(Round, "difficulty", "hard")
    documents = [NEAR, FAR]
    for answers, kept in ((["XOF"] * 3, 1), (["XOF", "XOF", "PEN"], 0)):
        replies = [HARD, "no form", *map(says, answers), *["Verdict: incorrect."] * (1 - kept)]
        assert len(play(tokenizer, replies, documents, rules(), 1)[0]) == kept


def test_every_solver_reads_the_evidence_in_other_company(tokenizer: ChatTokenizer) -> None:
    others = [document(f"o{n}", CURRENCY.sentence(f"N{n}", "PEN"), cluster="other") for n in range(30)]
    game = SelfPlay(ScriptedGenerator([]), tokenizer, rules())
    (claim,), _ = read_claims(
        Table((CHAD,), deque()),
        [CHAD],
        [Completion((), RIGHT, Finish.FINISHED)],
        Round(0, 1),
        Source(Domain.READING_COMPREHENSION, "self_play", "train", 0),
    )
    rng = random.Random(0)
    prompts = [game._solver_prompt(claim, others, rng) for _ in range(4)]
    assert len(set(prompts)) == 4
    assert all(CHAD.text in prompt and "N" in prompt for prompt in prompts)
    assert all(100 < tokenizer.prompt_length(prompt) <= 128 for prompt in prompts)


def test_documents_join_over_the_rounds() -> None:
    table = Table(tuple(document(f"d{n}", "x") for n in range(6)), deque(maxlen=3))
    seen = [{one.id for _ in range(40) for one in table.subset(Round(n, 3), random.Random(n))} for n in range(3)]
    assert len(table.subset(Round(0, 3), random.Random(0))) == 2
    assert len(table.subset(Round(2, 3), random.Random(0))) == 4
    assert Round(0, 3).joined_share == 0.5
    assert Round(1, 3).joined_share == 0.75
    assert Round(2, 3).joined_share == Round(0, 1).joined_share == 1.0
    assert seen[0] <= {"d0", "d1", "d2"}


def test_tables_seat_documents_that_share_names_and_fit() -> None:
    documents = [document(f"money{n}", CURRENCY.sentence(f"Land{n}", f"C{n}")) for n in range(4)]
    documents += [document(f"side{n}", LARGEST_NEIGHBOUR.sentence(f"Land{n}", f"X{n}")) for n in range(4)]
    documents += [document("alone", "w", cluster="two"), document("long", "w " * 99, cluster="two")]
    documents += [document("talk", "w", "dialogue")]
    tables = list(seat(documents, 20, words, 3, random.Random(0)))
    seated = sorted(sorted(one.id for one in table.documents) for table in tables)
    assert seated == [["alone"], *(["money" + n, "side" + n] for n in "0123")]
    assert all(table.history.maxlen == 3 for table in tables)
    assert list(seat([], 30, words, 3, random.Random(0))) == []


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    ("question", "answer", "problem"),
    [
        ("What is the currency of Chad?", "XAF", ""),
        ("What is the currency of Mali?", "XAF", "not about its documents"),
        ("What is it?", "XAF", "not about its documents"),
        ("What is the currency of Chad?", "Chad", "the question gives its answer away"),
        ("What is the currency of Chad?", " ", "answer empty or too long"),
        ("What is the currency of Chad?", "x " * 41, "answer empty or too long"),
    ],
)
def test_faults_of_a_proposal(question: str, answer: str, problem: str) -> None:
    assert fault(Proposal(question, answer), [CHAD, PERU], "easy") == problem
    assert fault(None, [CHAD], "easy") == "unreadable proposal"


@pytest.mark.parametrize(
    ("documents", "problem"),
    [
        ([NEAR, FAR], ""),
        (
            [NEAR, FAR, document("both", "Chad pays in XOF.")],
            ONE,
        ),
        (
            [NEAR, document("far", CURRENCY.sentence("Togo", "XOF"))],
            NO_LINK,
        ),
        ([NEAR], NO_LINK),
    ],
)
def test_a_hard_proposal_spans_linked_documents(documents: list[Document], problem: str) -> None:
    proposal = Proposal("What is the currency of the largest neighbour of Chad?", "XOF")
    assert fault(proposal, documents, "hard") == problem
    assert fault(proposal, documents, "easy") == ""


def test_no_documents_no_game(tokenizer: ChatTokenizer) -> None:
    assert play(tokenizer, [], [], rules(), 5)[:2] == ([], {})
