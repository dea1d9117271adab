"""Questions that give an answer away: their own, or that of another question of the split."""

from collections.abc import Iterable

from tasks.corpus.names import words
from tasks.records import Question
from tasks.synthesis.riddles import Riddle

GIVEN_AWAY = "the question gives its answer away"
STATES_ANOTHER = "the question gives the answer of another away"
STATED_BY_ANOTHER = "another question gives the answer away"
ASKED_BEFORE = "asked before"

Words = tuple[str, ...]  # each as `names.words` gives them


class LeakGuard:
    """Remembers the questions kept so far: none, with its options, may state the start and the answer of another."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """`taken` are questions asked elsewhere, which must not be asked again."""
        self._asked = {("", text) for text in taken}
        self._said: list[str] = []  # the words of each question and its options
        self._saying: dict[str, list[int]] = {}  # which of them say a word
        self._needs: dict[str, list[Words]] = {}  # by the first word of an answer: answer and start

    def refuse(self, question: Question, riddle: Riddle) -> str:
        """Why a question cannot join the others, or "", and then it has joined."""
        needs = tuple(words(text) for text in (riddle.answer, *riddle.keep))
        said = words("\n".join((question.question, *question.options)))
        if needs[0] in words(question.question):
            return GIVEN_AWAY
        if (riddle.scope, question.question) in self._asked:
            return ASKED_BEFORE
        problem = self._leak(said, needs)
        if not problem:
            self._asked.add((riddle.scope, question.question))
            self._add(said, needs)
        return problem

    def _leak(self, said: str, needs: Words) -> str:
        first = needs[0].split()[:1]
        if any(_states(self._said[other], needs) for word in first for other in self._saying.get(word, ())):
            return STATED_BY_ANOTHER
        if any(_states(said, other) for word in set(said.split()) for other in self._needs.get(word, ())):
            return STATES_ANOTHER
        return ""

    def _add(self, said: str, needs: Words) -> None:
        for word in set(said.split()):
            self._saying.setdefault(word, []).append(len(self._said))
        self._said.append(said)
        for word in needs[0].split()[:1]:
            self._needs.setdefault(word, []).append(needs)


def _states(said: str, needs: Words) -> bool:
    return all(need in said for need in needs)
