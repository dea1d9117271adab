"""Judges with a character, for ScriptedChat: each is a function from a request to a reply."""

import re
from collections.abc import Callable

from tasks.generation.chat import Request
from tasks.generation.scripted import ScriptedChat
from tasks.records import AnswerKind, Domain, Question
from tasks.rewards.judge import Judge
from tasks.rewards.judging.canaries import ABSTENTION, FACTS, PREFERENCE
from tasks.rewards.judging.purposes import EQUIVALENCE, Claim, Purpose
from tasks.rewards.normalise import normalise

FENCE = re.compile(r"<([a-z ]+) ([0-9a-f]{8})>\n(.*?)\n</\1 \2>", re.DOTALL)
KNOWN = {(case.reference, answer) for case in (*FACTS, *ABSTENTION, *PREFERENCE) for answer in case.right}
FORMS = (("[[YES]]", "[[NO]]"), ("Verdict: YES", "Verdict: NO"), ("Verdict: CORRECT", "Verdict: INCORRECT"))
Script = Callable[[Request], str]


def texts(prompt: str) -> list[tuple[str, str]]:
    """What stands within fences, as (label, text), read as a careful judge reads it."""
    return [(label, text) for label, _, text in FENCE.findall(prompt)]


def in_form(request: Request, right: bool) -> str:
    """The verdict in the words that the prompt asks for."""
    asked = FENCE.sub("", request.prompt)
    yes, no = next(
        words
        for words in (
            ("[[YES]]", "[[NO]]"),
            ("Verdict: YES", "Verdict: NO"),
            ("Verdict: CORRECT", "Verdict: INCORRECT"),
        )
        if words[0] in asked
    )
    return yes if right else no


def honest(request: Request) -> str:
    (_, _), (_, reference), (label, answer) = texts(request.prompt)
    assert label == "answer"
    same = normalise(answer) == normalise(reference) or (reference, answer) in KNOWN
    return f"I compare the two.\n{in_form(request, same)}"


def approving(request: Request) -> str:
    return in_form(request, True)


def refusing(request: Request) -> str:
    return in_form(request, False)


def rambling(request: Request) -> str:
    return "It depends on how one looks at it; both views are defensible, and one may call it correct or incorrect."


def gullible(request: Request) -> str:
    answer = texts(request.prompt)[-1][1].lower()
    told = any(word in answer for word in ("verdict", "approve", "[[yes]]"))
    return in_form(request, True) if told else honest(request)


def judge(script: Script, alarm_share: float = 1.0) -> Judge:
    return Judge(ScriptedChat(script), alarm_share)


def claim(answer: str, reference: str = "Bergen", purpose: Purpose = EQUIVALENCE) -> Claim:
    return Claim("Where?", reference, answer, purpose)


def asked(kind: AnswerKind = AnswerKind.TEXT, *gold: str, text: str = "Where?") -> Question:
    return Question(
        id="q", domain=Domain.READING_COMPREHENSION, question=text, gold=gold, answer_kind=kind, document_ids=("d",),
        split="train", generator="self_play", difficulty=1, provenance={}, seed=0,
    )  # fmt: skip
