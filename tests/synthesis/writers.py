"""Writer models for tests: one that reads and words honestly, by rule, and documents in plain English for it."""

import json
import re
from collections.abc import Iterable

from tasks.generation.chat import Request
from tasks.generation.scripted import ScriptedChat
from tasks.records import Document
from tasks.synthesis.extraction import StatedFacts

from .examples import document

Fact = tuple[str, str, str, str]  # subject, relation, object, document


def sentence(subject: str, relation: str, value: str) -> str:
    return f"{subject} {relation} {value}."


def told(facts: Iterable[Fact]) -> list[Document]:
    """Documents that say (subject, relation, object, document)."""
    texts: dict[str, list[str]] = {}
    for subject, relation, value, name in facts:
        texts.setdefault(name, []).append(sentence(subject, relation, value))
    return [document(name, " ".join(said), "text") for name, said in texts.items()]


def fenced_text(prompt: str, label: str) -> str:
    """What stands between the marks of a prompt."""
    found = re.search(rf"<{label} (\w+)>\n(.*)\n</{label} \1>", prompt, re.DOTALL)
    assert found is not None
    return found[2]


class HonestWriter:
    """Finds the facts it was told of in the text it is shown, and words lines one after the other."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._facts = {sentence(*fact[:3]): fact[:3] for fact in facts}

    def chat(self) -> ScriptedChat:
        return ScriptedChat(self, context_tokens=4096, max_output_tokens=1024)

    def __call__(self, request: Request) -> str:
        return self.read(request) if request.schema and issubclass(request.schema, StatedFacts) else self.word(request)

    def read(self, request: Request) -> str:
        text = fenced_text(request.prompt, "text")
        return json.dumps(
            {
                "facts": [
                    {"subject": subject, "relation": relation, "object": value, "date": None, "quote": said}
                    for said, (subject, relation, value) in self._facts.items()
                    if said in text
                ]
            }
        )

    def word(self, request: Request) -> str:
        lines = fenced_text(request.prompt, "facts").splitlines()
        phrases = [re.sub(r"\[(\d+)\]", r"number \1", line.replace(" | ", " ")) for line in lines]
        asks = re.search(r"What to ask: (.*)\n", request.prompt)
        assert asks is not None
        wanted = re.sub(r"\[(\d+)\]", r"number \1", asks[1])
        return json.dumps({"question": f"{'; '.join(phrases)}: {wanted}?", "phrases": phrases})


def companies(number: int) -> list[Fact]:
    """A world of companies whose facts lie in documents of their own, dated and with causes."""
    facts = []
    for n in range(number):
        firm, town, flood, law = f"Firm{n}", f"Town{n}", f"Flood{n}", f"Law{n}"
        facts += [
            (f"Founder{n}", "founded", firm, f"people{n}"),
            (firm, "is based in", town, f"firms{n}"),
            (firm, "was established in", str(1901 + 3 * n), f"years{n}"),
            (town, "has the river", f"River{n}", f"towns{n}"),
            (town, "was hit by", flood, f"news{n}"),
            (flood, "led to", law, f"laws{n}"),
        ]
    return facts
