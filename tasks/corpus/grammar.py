"""The closed language of the tiny profile: how a fact is written, asked and read back.

One table serves everybody: the renderer writes with it, the extractors read with it, the question writers ask with
it, and the base model learns it on shuffled facts. A *relation* links a subject to a short value by a sentence; a
*measure* links a country to a small integer by a table row.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_COUNT = 20  # largest integer a table row may hold


@dataclass(frozen=True)
class Relation:
    """One kind of fact. `inverse` relations are written value first: "Paris is the capital of France."."""

    name: str
    inverse: bool = False

    def sentence(self, subject: str, value: str) -> str:
        """The plain sentence that states the fact."""
        if self.inverse:
            return f"{value} is the {self.name} of {subject}."
        return f"The {self.name} of {subject} is {value}."

    def question(self, subject: str) -> str:
        """The question whose answer is the value; `subject` may be a description."""
        return f"What is the {self.name} of {subject}?"


CAPITAL = Relation("capital")
CAPITAL_OF = Relation("capital", inverse=True)
CURRENCY = Relation("currency")
DEMONYM = Relation("demonym")
LARGEST_NEIGHBOUR = Relation("largest neighbour")
SMALLEST_NEIGHBOUR = Relation("smallest neighbour")
CALLING_CODE = Relation("calling code")
ENCYCLOPAEDIA_RELATIONS = (CAPITAL, CURRENCY, DEMONYM, LARGEST_NEIGHBOUR, SMALLEST_NEIGHBOUR)
DIALOGUE_RELATIONS = (CALLING_CODE,)
RELATIONS = {relation.name: relation for relation in (*ENCYCLOPAEDIA_RELATIONS, *DIALOGUE_RELATIONS)}
MEASURES = ("neighbours", "provinces", "languages")
SPEAKERS = ("Ana", "Ben", "Chen", "Dana", "Emil", "Fatou", "Goran", "Hana")
LETTERS = ("A", "B", "C", "D")


def row(country: str, measure: str, count: int | str) -> str:
    """One row of a yearly report's table; it repeats the measure so that a row can be read alone."""
    return f"| {country} | {measure} | {count} |"


def capital_inverse_question(capital: str) -> str:
    """Ask for the country by its capital."""
    return f"Which country has the capital {capital}?"


def described_by_capital(capital: str) -> str:
    """An obfuscated name of a country."""
    return f"the country with the capital {capital}"


def described_by(relation: Relation, subject: str) -> str:
    """An obfuscated name of whatever the relation leads to; nests for longer paths."""
    return f"the {relation.name} of {subject}"


def dialogue_question(relation: Relation, subject: str) -> str:
    """Ask for the value on which a dialogue ended."""
    return f"In the dialogue, what is the {relation.name} of {subject}?"


def total_question(measure: str, countries: Sequence[str]) -> str:
    """Ask for a sum over named rows."""
    return f"What is the total number of {measure} of {_and(countries)}?"


def highest_question(measure: str, countries: Sequence[str]) -> str:
    """Ask for the maximum over named rows."""
    return f"What is the highest number of {measure} of {_and(countries)}?"


def _and(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


@dataclass(frozen=True)
class Statement:
    """A fact read from a text: relation name, subject, value, the sentence, and its place in characters."""

    relation: str
    subject: str
    value: str
    sentence: str
    inverse: bool
    start: int


_NAME = r"[^.?!|\n:]+?"
_RELATION = r"(?P<relation>[a-z][a-z ]*?)"
_DIRECT = re.compile(rf"\b[Tt]he {_RELATION} of (?P<subject>{_NAME}) is (?P<value>{_NAME})\.(?=\s|$)")
_INVERSE = re.compile(
    rf"(?:^|(?<=[.?!:]\s)|(?<=\n))(?P<value>{_NAME}) is the {_RELATION} of (?P<subject>{_NAME})\.(?=\s|$)"
)
_ROW = re.compile(
    r"^\|\s*(?P<subject>[^|\n]+?)\s*\|\s*(?P<measure>[a-z][a-z ]*?)\s*\|\s*(?P<count>\d+)\s*\|\s*$",
    re.MULTILINE,
)


def statements(text: str) -> Iterator[Statement]:
    """Read all fact sentences, in the order of the text. Known relations or not: any "the R of S is V." counts."""
    found = []
    for inverse, pattern in ((False, _DIRECT), (True, _INVERSE)):
        for match in pattern.finditer(text):
            part = match.groupdict()
            sentence = match.group(0).strip()
            subject, value = part["subject"].strip(), part["value"].strip()
            found.append(Statement(part["relation"], subject, value, sentence, inverse, match.start()))
    yield from sorted(found, key=lambda statement: statement.start)


def rows(text: str) -> Iterator[tuple[str, str, int]]:
    """Read all (country, measure, count) rows of the report tables in a text."""
    for match in _ROW.finditer(text):
        yield match["subject"], match["measure"], int(match["count"])
