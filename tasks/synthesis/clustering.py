"""Which names mean one entity and which wordings one relation, over all documents of a split.

A missed merge costs a path; a wrong one makes a question whose answer is false. So names merge by rules that hold by
themselves, never by likeness: "Nigeria" is as like "Niger" as a misprint would be. Every rule is a normal form or a
form that the documents themselves introduce, which makes the result independent of order, and linear in the names.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from tasks.corpus.names import folded, key

LETTERS_WITHOUT_ACCENTS = 8  # in shorter names an accent may be all that distinguishes two
LETTERS_WITHOUT_ARTICLE = 6  # "the Netherlands" is "Netherlands", "The Who" is not "who"

_KEPT = "#%&@*"  # punctuation that is part of a name: "C#" is not "C"
_ACCENTED = re.compile("([a-z])[\u0300-\u036f]+")
_INNER_DOT = re.compile(r"(?<=\b[a-z])\.(?=[a-z]\b)|(?<=\b[a-z]\.[a-z])\.(?!\w)")  # "u.s." is "us"
_IN_NUMBER = re.compile(r"(?<=\d)[.,:/](?=\d)|(?<![\w)])-(?=\d)")
_LEGAL = {
    **{form: form for form in "ag bv gmbh kk llc llp nv oy oyj plc pty sarl se spa srl 株式会社 有限公司".split()},
    **{"inc": "inc", "incorporated": "inc", "corp": "corp", "corporation": "corp", "ltd": "ltd", "limited": "ltd"},
}
_SHORT = r"[A-Z][A-Z&.]{1,9}"
_LONG = r"\b[^\W\d_][\w'’]*(?:[ -](?:(?:of|the|and|for|de|du|des|di|der|und|la|&) )?[A-Z][\w'’]*){1,9}"
_INTRODUCED = re.compile(rf"(?P<long>{_LONG}) \((?P<short>{_SHORT})\)|\b(?P<first>{_SHORT}) \((?P<second>{_LONG})\)")
_PARTICIPLE = r"(?:\w+ed|born|built|chosen|given|held|known|led|made|sold|taken|won|written) "
_AUXILIARY = re.compile(rf"^(?:(?:is|are|be|has|have|the|a|an) |(?:was|were|has been|have been) (?={_PARTICIPLE}))+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def entity_form(name: str) -> str:
    """A name without differences of width, case, punctuation, accents and article. Never empty for a name with a sign.

    Numbers and every distinguishing word stay: "Apollo 11" and "Apollo 13", "North Korea" and "South Korea".
    """
    text = _plain(name)
    letters = _ACCENTED.sub(r"\1", unicodedata.normalize("NFD", text))
    if len(letters.replace(" ", "")) >= LETTERS_WITHOUT_ACCENTS:
        text = unicodedata.normalize("NFC", letters)
    while text.startswith("the ") and (" " in text[4:] or len(text) - 4 >= LETTERS_WITHOUT_ARTICLE):
        text = text[4:]
    return text or key(name)


def _plain(name: str) -> str:
    """Folded words; what is no letter, digit or part of a name becomes a space."""
    text = _INNER_DOT.sub("", folded(name))
    kept = {match.start() for match in _IN_NUMBER.finditer(text)}
    signs = (sign if at in kept else _sign(sign) for at, sign in enumerate(text))
    return " ".join("".join(signs).replace("&", " and ").split())


def _sign(sign: str) -> str:
    if sign in "'’":
        return ""
    return " " if sign not in _KEPT and unicodedata.category(sign)[0] in "PZC" else sign


def relation_form(relation: str) -> str:
    """A relation without auxiliaries, articles, number and tense: "was acquired by" is "acquires by".

    Prepositions stay, they tell the direction; so does "was" before a noun: who was president need not be president.
    """
    text = " ".join(re.split(r"[\W_]+", folded(_CAMEL.sub(" ", relation)))).strip()
    return " ".join(_stem(word) for word in _AUXILIARY.sub("", text).split()) or text


def _stem(word: str) -> str:
    """Cut the ending of a plural, a third person or a past tense; other forms stay apart."""
    if len(word) < 4 or not word.isascii():
        return word
    for ending, instead in (("ies", "y"), ("ied", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x")):
        if word.endswith(ending):
            return word.removesuffix(ending) + instead
    if word.endswith("ed") and not word.endswith("eed"):
        word = word.removesuffix("ed")
        return word[:-1] if len(word) > 2 and word[-1] == word[-2] and word[-1] not in "ls" else word
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word.removesuffix("s")
    return word.removesuffix("e")


def introductions(text: str) -> Iterator[tuple[str, str]]:
    """Short and long names that a text introduces as one: "International Business Machines (IBM)"."""
    for match in _INTRODUCED.finditer(text):
        short, long = (match["short"], match["long"]) if match["short"] else (match["first"], match["second"])
        if (introduced := _spelled_by(short, long)) is not None:
            yield short, introduced


def _spelled_by(short: str, long: str) -> str | None:
    """The last words of `long` whose capitals spell `short`, or None."""
    letters = re.sub(r"\W", "", short)
    parts = re.split(r"[ -]", long)
    for start in range(len(parts) - 1, -1, -1):
        capitals = "".join(part[0] for part in parts[start:] if part[:1].isupper())
        if capitals == letters and parts[start][:1].isupper():
            return long[len(long) - len(" ".join(parts[start:])) :]
    return None


class Clusters:
    """Entities of one corpus: equal forms, a company with and without its legal suffix, introduced short names.

    A suffix goes only where the corpus has no other one with that name, and a short name only where it is
    introduced for one long name and no other entity has these initials.
    """

    def __init__(self, names: Iterable[str], introduced: Iterable[tuple[str, str]] = ()) -> None:
        self._instead: dict[str, str] = {}
        forms = {entity_form(name) for name in names}
        self._drop_suffixes(forms)
        self._expand(forms, introduced)

    def of(self, name: str) -> str:
        """The entity's form; names with the same form are one entity."""
        form = _legal(entity_form(name))
        form = self._instead.get(form, form)
        return self._instead.get(form, form)  # a short name stands for a company, whose suffix was dropped

    def _drop_suffixes(self, forms: set[str]) -> None:
        companies: dict[str, set[str]] = {}
        for form in map(_legal, forms):
            base, _, suffix = form.rpartition(" ")
            if base and suffix in _LEGAL:
                companies.setdefault(base, set()).add(form)
        for base, found in companies.items():
            if len(found) == 1 and base in forms:
                self._instead[min(found)] = base

    def _expand(self, forms: set[str], introduced: Iterable[tuple[str, str]]) -> None:
        meanings: dict[str, set[str]] = {}
        for short, long in introduced:
            meanings.setdefault(entity_form(short), set()).add(self.of(long))
        initials: dict[str, set[str]] = {}
        for form in forms:
            initials.setdefault(_initials(form), set()).add(self.of(form))
        known = {self.of(form) for form in forms}
        for short, longs in meanings.items():
            one = len(longs) == 1 and longs <= known and short in forms
            if one and initials.get(short, set()) <= longs and short not in self._instead.values():
                self._instead[short] = min(longs)


def _legal(form: str) -> str:
    """One spelling of the legal suffix, which is no name by itself."""
    base, _, suffix = form.rpartition(" ")
    return f"{base} {_LEGAL[suffix]}" if base and suffix in _LEGAL else form


def _initials(form: str) -> str:
    """First letters of a name's words, the small ones and a legal suffix left out; "" for a single word."""
    parts = [part for part in form.split() if part not in {"of", "the", "and", "for", "de"} and part not in _LEGAL]
    return "".join(part[0] for part in parts) if len(parts) > 1 else ""
