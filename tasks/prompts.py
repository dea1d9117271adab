"""Every prompt of the recipe's roles, and the parsers of their replies. Pure text.

Roles: answer a question, update the memory and the plan, answer from the memory, propose a question, judge equality.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tasks.corpus.grammar import LETTERS
from tasks.records import AnswerKind, Question, Verdict

Difficulty = Literal["easy", "hard"]
EMPTY_MEMORY = "none"
EMPTY_PLAN = "read"


@dataclass(frozen=True)
class MemoryState:
    """What the memory agent carries from chunk to chunk: (m_t, p_t) of QwenLong-L1.5 §4.4."""

    memory: str = EMPTY_MEMORY
    plan: str = EMPTY_PLAN


@dataclass(frozen=True)
class Proposal:
    """A question and its answer as the proposer wrote them."""

    question: str
    answer: str


def join_documents(documents: Sequence[str]) -> str:
    """Number the documents as the prompt shows them."""
    return "\n".join(f"Document {number}: {text}" for number, text in enumerate(documents, 1))


def ask(question: str, options: Sequence[str] = (), instruction: str = "") -> str:
    """The question line, with lettered options when there are any. The value precedes its letter."""
    listed = ", ".join(f"{option} ({letter})" for option, letter in zip(options, LETTERS, strict=False))
    line = f"Question: {question} Options: {listed}." if options else f"Question: {question}"
    return f"{line}\n{instruction}" if instruction else line


def answer_prompt(documents: Sequence[str], question: str, options: Sequence[str] = (), instruction: str = "") -> str:
    """Answer from the full context; without documents the bare question (knowledge grounding check)."""
    line = ask(question, options, instruction)
    return f"{join_documents(documents)}\n{line}" if documents else line


def question_prompt(documents: Sequence[str], question: Question) -> str:
    """The answer prompt of a question as it is recorded."""
    return answer_prompt(documents, question.question, question.options, question.instruction)


def question_from_memory(memory: str, question: Question) -> str:
    """The final prompt of a question as it is recorded."""
    return final_prompt(memory, question.question, question.options, question.instruction)


def update_prompt(chunk: str, question: str, memory: str, plan: str) -> str:
    """Read one chunk and write the new memory and plan; the chunk comes first so that trajectories can share it."""
    return f"{chunk}\nQuestion: {question}\nMemory: {memory}\nPlan: {plan}\nUpdate the memory."


def final_prompt(memory: str, question: str, options: Sequence[str] = (), instruction: str = "") -> str:
    """Answer from the final memory; the plan is not shown (QwenLong-L1.5 §4.4)."""
    return f"Memory: {memory}\n{ask(question, options, instruction)}"


def propose_prompt(documents: Sequence[str], difficulty: Difficulty, history: Sequence[str]) -> str:
    """Ask for a question of a difficulty that differs from the verified ones in `history`."""
    earlier = " ".join(history) if history else "none"
    article = "an" if difficulty == "easy" else "a"
    return f"{join_documents(documents)}\nEarlier questions: {earlier}\nPropose {article} {difficulty} question."


def judge_prompt(question: str, gold: str, answer: str) -> str:
    """Ask whether two answers mean the same."""
    return f"Question: {question}\nReference answer: {gold}\nGiven answer: {answer}\nVerdict?"


_FORMS = {
    AnswerKind.LETTER: "X is the letter of the right option",
    AnswerKind.NUMBER: "X is a number in digits",
    AnswerKind.QUANTITY: "X is a number in digits with its unit",
    AnswerKind.PERCENT: "X is a number in digits with a percent sign",
    AnswerKind.DATE: "X is the date or period, as in 2023-05 or 2023-05-17",
    AnswerKind.LIST: "X is all that belongs to the answer, separated by semicolons, or [] if nothing does",
    AnswerKind.SET: "X is all that belongs to the answer, separated by semicolons, or [] if nothing does",
    AnswerKind.ORDERED_LIST: "X is all that belongs to the answer, in order, separated by semicolons",
    AnswerKind.YES_NO: "X is yes or no",
    AnswerKind.CODE: "X is the code",
}


def instruction(kind: AnswerKind) -> str:
    """How to state an answer so that it can be found (tasks/rewards/extraction.py)."""
    form = _FORMS.get(kind, "X is as short as it can be")
    return f'End with one line: "The answer is X.", where {form}.'


_UPDATE = re.compile(r"<memory>(.*?)</memory>\s*<plan>(.*?)</plan>", re.DOTALL)
_PROPOSAL = re.compile(r"Question\s*:\s*(.+?\?)\s*Answer\s*:\s*(.+?)\s*\.?\s*$", re.DOTALL)
_VERDICT = re.compile(r"\b(not\s+)?(in)?correct\b", re.IGNORECASE)


def parse_update(text: str) -> MemoryState | None:
    """Read the last well-formed update of a reply; None when there is none or the memory is blank."""
    found = _UPDATE.findall(text)
    if not found:
        return None
    memory, plan = (part.strip() for part in found[-1])
    return MemoryState(memory, plan or EMPTY_PLAN) if memory else None


def parse_proposal(text: str) -> Proposal | None:
    """Read a proposed question and answer; None when the form is broken."""
    match = _PROPOSAL.search(text)
    return Proposal(match[1].strip(), match[2].strip()) if match else None


def parse_verdict(text: str) -> Verdict:
    """Read a judge's reply: a JSON verdict, else the last "correct" / "incorrect". Anything else is unscored."""
    verdict = _json_verdict(text)
    if verdict is not None:
        return verdict
    found = _VERDICT.findall(text)
    if not found:
        return Verdict.UNSCORED
    negations = sum(bool(part) for part in found[-1])
    return Verdict.CORRECT if negations % 2 == 0 else Verdict.WRONG


def _json_verdict(text: str) -> Verdict | None:
    try:
        reply = json.loads(text)
    except ValueError:
        return None
    flag = reply.get("match") if isinstance(reply, dict) else None
    if isinstance(flag, str):
        flag = {"true": True, "false": False}.get(flag.strip().lower())
    if not isinstance(flag, bool):
        return Verdict.UNSCORED
    return Verdict.CORRECT if flag else Verdict.WRONG
