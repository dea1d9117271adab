"""Extending a context: evidence documents among topically near documents that do not answer the question.

QwenLong-L1.5 §3.2. The extended context is what is verified, stored and trained on.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from tasks.errors import InputError
from tasks.prompts import answer_prompt, join_documents
from tasks.records import Document, Domain, Question
from tasks.synthesis.names import key, mentions
from tasks.synthesis.questions import facts_of, names_of


def extend(
    question: Question,
    documents: Mapping[str, Document],
    bucket_tokens: int,
    count: Callable[[str], int],
    rng: random.Random,
) -> tuple[str, ...]:
    """Return the ids of a context in prompt order: the evidence, and as many distractors as fit.

    Distractors come from the question's split, the nearest first: same kind, same cluster, shared names. Left
    out are documents that state a fact the answer rests on, or that mention both ends of a multi-hop path.

    Args:
        documents: id → document, of all splits.
        bucket_tokens: the most that `count` may say of the rendered answer prompt.
        count: tokens of a prompt; cache it, the same documents are counted for every question.

    Raises:
        InputError: the evidence alone exceeds the bucket, or an evidence document is unknown.
    """
    unknown = [document for document in question.document_ids if document not in documents]
    if unknown:
        raise InputError(f"question {question.id} names unknown documents {', '.join(unknown)}; rerun synthesize")
    chosen = list(question.document_ids)
    length = count(_render(question, [documents[document].text for document in chosen]))
    if length > bucket_tokens:
        raise InputError(f"the evidence of {question.id} needs {length} tokens, more than the {bucket_tokens} allowed")
    room = bucket_tokens - length
    empty = count("")
    for candidate in _nearest(question, documents, rng):
        cost = count(f"{join_documents([candidate.text])}\n") - empty
        if cost <= room:
            chosen.append(candidate.id)
            room -= cost
    while count(_render(question, [documents[document].text for document in chosen])) > bucket_tokens:
        chosen.pop()  # a tokenizer may need more for two-digit document numbers
    rng.shuffle(chosen)
    return tuple(chosen)


def _render(question: Question, texts: Sequence[str]) -> str:
    return answer_prompt(texts, question.question, question.options)


def _nearest(question: Question, documents: Mapping[str, Document], rng: random.Random) -> Iterator[Document]:
    evidence = [documents[document] for document in question.document_ids]
    facts = {(relation, subject) for relation, subject in question.provenance["facts"]}
    kinds, clusters = {one.kind for one in evidence}, {one.cluster for one in evidence}
    names = frozenset[str]().union(*(names_of(one.text) for one in evidence), map(key, question.options))
    ends = _ends(question)

    def distance(candidate: Document) -> tuple[int, float]:
        shared = (
            candidate.kind in kinds,
            candidate.cluster in clusters,
            bool(names & names_of(candidate.text)),
        )
        return -sum(shared), rng.random()

    candidates = [
        document
        for document in documents.values()
        if document.split == question.split
        and document.id not in question.document_ids
        and not facts & facts_of(document.text)
        and not (ends and all(mentions(document.text, end) for end in ends))
    ]
    yield from sorted(candidates, key=distance)


def _ends(question: Question) -> tuple[str, ...]:
    """Start and answer of a multi-hop path, else nothing."""
    if question.domain is not Domain.MULTI_HOP:
        return ()
    hops = question.provenance["hops"]
    return str(hops[0]["source"]), str(hops[-1]["target"])
