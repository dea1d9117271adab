"""Extending a context: evidence documents among topically near documents that do not answer the question.

QwenLong-L1.5 §3.2. The extended context is what is verified, stored and trained on.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence

from tasks.corpus.library import Library
from tasks.corpus.names import key
from tasks.errors import InputError
from tasks.prompts import join_documents, question_prompt
from tasks.records import AnswerKind, Document, DocumentKind, Domain, Question, Split
from tasks.synthesis.questions import facts_of

FIRST_FETCH = 256  # candidates; then GROWTH times as many, as long as they do not fill the bucket
GROWTH = 4
FULL = 32  # candidates in a row that did not fit: what room is left is not worth looking further
TELLING_SHARE = 0.1  # of a split's documents; an answer that more of them mention ("no", "2") tells nothing
FREE_KINDS: frozenset[DocumentKind] = frozenset({"text", "table"})  # not of the closed language that `facts_of` reads
_WORD = re.compile(r"\w+")


def extend(
    question: Question,
    library: Library,
    bucket_tokens: int,
    count: Callable[[str], int],
    rng: random.Random,
) -> tuple[str, ...]:
    """Return the ids of a context in prompt order: the evidence, and as many distractors as fit.

    Distractors come from the question's split, the nearest first: by BM25 to question and evidence, and of the
    candidates fetched at a time those of the same kind and cluster before others. Where no more documents share a word,
    any will do. Left out are documents that may answer the question themselves.

    Args:
        library: the documents of all splits.
        bucket_tokens: the most that `count` may say of the rendered answer prompt.
        count: tokens of a prompt; cache it, the same documents are counted for every question.
        rng: decides the order of the prompt, and the distractors that share no word.

    Raises:
        InputError: the evidence alone exceeds the bucket, or an evidence document is unknown.
    """
    unknown = [document for document in question.document_ids if document not in library]
    if unknown:
        raise InputError(f"question {question.id} names unknown documents {', '.join(unknown)}; rerun synthesize")
    evidence = [library[document] for document in question.document_ids]
    context = [(document.id, document.text) for document in evidence]
    length = _tokens(question, context, count)
    if length > bucket_tokens:
        raise InputError(f"the evidence of {question.id} needs {length} tokens, more than the {bucket_tokens} allowed")
    context += _fitting(_candidates(question, evidence, library, rng), bucket_tokens - length, count)
    while _tokens(question, context, count) > bucket_tokens:
        context.pop()  # a tokenizer may need more for two-digit document numbers
    chosen = [document for document, _ in context]
    rng.shuffle(chosen)
    return tuple(chosen)


def _tokens(question: Question, context: Sequence[tuple[str, str]], count: Callable[[str], int]) -> int:
    return count(question_prompt([text for _, text in context], question))


def _fitting(candidates: Iterator[Document], room: int, count: Callable[[str], int]) -> Iterator[tuple[str, str]]:
    """Ids and texts of the candidates that fit one after the other, until many in a row do not."""
    empty = count("")
    misses = 0
    for candidate in candidates:
        cost = count(f"{join_documents([candidate.text])}\n") - empty
        if cost <= room:
            yield candidate.id, candidate.text
            room -= cost
            misses = 0
        else:
            misses += 1
        if misses == FULL:
            return


def _candidates(
    question: Question, evidence: Sequence[Document], library: Library, rng: random.Random
) -> Iterator[Document]:
    """All documents of the split that may be distractors, the nearest first, fetched when they are asked for."""
    answers = _answering(question, library)
    for name in _nearest(question, evidence, library, rng):
        candidate = library[name]
        if not answers(candidate):
            yield candidate


def _nearest(question: Question, evidence: Sequence[Document], library: Library, rng: random.Random) -> Iterator[str]:
    about = "\n".join([question.question, *question.options, *(f"{one.title}\n{one.text}" for one in evidence)])
    kin = [library.label(document.id) for document in evidence]
    kinds, clusters = {label.kind for label in kin}, {label.cluster for label in kin}
    seen = set(question.document_ids)

    def unlikeness(name: str) -> int:
        label = library.label(name)
        return -(label.kind in kinds) - (label.cluster in clusters)

    number = FIRST_FETCH
    while True:
        found = library.nearest(about, question.split, number)
        yield from sorted((name for name in found if name not in seen), key=unlikeness)
        seen.update(found)
        if len(found) < number:
            break
        number *= GROWTH
    rest = [name for name in library.ids(question.split) if name not in seen]
    yield from rng.sample(rest, len(rest))


def _answering(question: Question, library: Library) -> Callable[[Document], bool]:
    """Whether a document may answer the question itself.

    It does so if it states a fact the answer rests on, or mentions both ends of a multi-hop path. The facts of free
    text cannot be listed: there, the words of a fact or of the whole question and its answer are enough.
    """
    facts = {(relation, subject) for relation, subject in question.provenance["facts"]}
    both_ends = _mentioning_all(_ends(question), question.split, library)
    suspected = _suspected(question, library)

    def answers(document: Document) -> bool:
        if document.id in both_ends or (document.kind in FREE_KINDS and document.id in suspected):
            return True
        return bool(facts & facts_of(document.text))

    return answers


def _suspected(question: Question, library: Library) -> frozenset[str]:
    """Documents that mention both ends of a recorded fact, or all that the question names and the answer.

    Where only relation and subject of a fact are recorded, these are looked for.
    """
    recorded = [*question.provenance.get("hops", ()), *question.provenance.get("clues", ())]
    stated = [(fact["source"], fact["target"]) for fact in recorded] or question.provenance["facts"]
    whole = [*_names(question), *_telling(question, library)]
    return frozenset().union(*(_mentioning_all(names, question.split, library) for names in (whole, *stated)))


def _mentioning_all(names: Sequence[str], split: Split, library: Library) -> frozenset[str]:
    """Documents that mention every one of the names; without names none."""
    found: frozenset[str] | None = None
    for name in names:
        mentioning = library.mentioning(name, split)
        found = mentioning if found is None else found & mentioning
        if not found:
            break
    return found or frozenset()


def _ends(question: Question) -> tuple[str, ...]:
    """Start and answer of a multi-hop path, else nothing."""
    if question.domain is not Domain.MULTI_HOP:
        return ()
    hops = question.provenance["hops"]
    return str(hops[0]["source"]), str(hops[-1]["target"])


def _names(question: Question) -> list[str]:
    """What a question is about: the subjects of its facts, else the capitalised words and numbers after its first."""
    answers = set(map(key, question.gold))  # "Which country has the capital Paris?" rests on a fact about the answer
    subjects = [subject for _, subject in question.provenance["facts"] if key(subject) not in answers]
    return subjects or [word for word in _WORD.findall(question.question)[1:] if word[0].isupper() or word[0].isdigit()]


def _telling(question: Question, library: Library) -> list[str]:
    """The gold answers whose words say that a text may state them: not "no" or "2", which stand in many texts."""
    gold = question.gold
    if question.answer_kind is AnswerKind.LETTER:
        gold = (question.options[ord(question.gold[0]) - ord("A")],)
    most = TELLING_SHARE * len(library.ids(question.split))
    return [answer for answer in gold if len(library.mentioning(answer, question.split)) <= most]
