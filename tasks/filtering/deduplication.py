"""Near-duplicate questions: compared exactly, word by word, among those that could be duplicates at all.

Why MinHash does not decide: questions are short and share templates ("What is the capital of …?"), so a dozen shingles
estimate their similarity too roughly, and the words that tell them apart are few. Two questions with different answers,
about different names or on different documents are never duplicates; grouping by these leaves groups small enough to
compare every pair. Where a group is large all the same, MinHash proposes which pairs to compare.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from rapidfuzz.distance import Indel

from tasks.filtering.contamination import answer_texts
from tasks.records import Question
from tasks.rewards.normalise import normalise

LARGE = 256  # questions of a group, from which on not every pair is compared
PERMUTATIONS, BANDS = 128, 32  # finds 99.9 % of pairs with two of three words in common, which 0.8 alike ones have
_SPECIFIC = re.compile(r"(?<!^)\b(?:[A-Z]|\w*\d)[\w'’-]*")  # names and numbers; the first word is neither
Key = tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]
Words = Sequence[str]


def near_duplicates(questions: Sequence[Question], similarity: float) -> dict[str, str]:
    """Map each question to drop to the earlier one that it repeats (ids).

    Two questions are near-duplicates when domain, evidence, gold answer (option text for letters), names and
    numbers are the same and their words are at least `similarity` alike: 2 · common subsequence / total words,
    in 0..1. The first of a chain stays: a question is compared with kept ones only.
    """
    groups: dict[Key, list[Question]] = defaultdict(list)
    for question in questions:
        groups[_key(question)].append(question)
    repeats: dict[str, str] = {}
    for group in groups.values():
        words = [normalise(question.question).split() for question in group]
        for place, original in repeated(words, similarity).items():
            repeats[group[place].id] = group[original].id
    return repeats


def repeated(texts: Sequence[Words], similarity: float) -> dict[int, int]:
    """Map the place of each text that repeats an earlier kept one to the place of that one."""
    candidates = range if len(texts) < LARGE else _alike(texts)
    repeats: dict[int, int] = {}
    for place, words in enumerate(texts):
        kept = (other for other in candidates(place) if other not in repeats)
        alike = (other for other in kept if Indel.normalized_similarity(words, texts[other]) >= similarity)
        original = next(alike, None)
        if original is not None:
            repeats[place] = original
    return repeats


def _alike(texts: Sequence[Words]) -> Callable[[int], Iterable[int]]:
    """For the place of a text: those of earlier ones that share many of its words, by their MinHashes."""
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=0.0, num_perm=PERMUTATIONS, num_bands=BANDS)  # the bands alone set the threshold
    hashes = []
    for place, words in enumerate(texts):
        hashed = RMinHash(num_perm=PERMUTATIONS, seed=0)
        hashed.update(list(words))
        index.insert(place, hashed)
        hashes.append(hashed)
    return lambda place: sorted(other for other in index.query(hashes[place]) if other < place)


def _key(question: Question) -> Key:
    answers = tuple(sorted(normalise(text) for text in answer_texts(question)))
    names = tuple(sorted(_SPECIFIC.findall(question.question)))
    return question.domain, tuple(sorted(question.document_ids)), answers, names
