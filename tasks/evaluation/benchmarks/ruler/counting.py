"""Common and frequent words of a long list (RULER, common_words_extraction.py and freq_words_extraction.py)."""

import math
import random
import string
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from tasks.evaluation.benchmarks.ruler.samples import LONG, Puzzle, Sample, distinct
from tasks.evaluation.benchmarks.ruler.words import different_words

COMMON_TEMPLATE = (
    "Below is a numbered list of words. In these words, some appear more often than others. Memorize the ones that "
    "appear most often.\n{context}\nQuestion: What are the 10 most common words in the above list?"
)
COMMON_PREFIX = " Answer: The top 10 words that appear most often in the list are:"
FREQUENT_TEMPLATE = (
    "Read the following coded text and track the frequency of each coded word. Find the three most frequently appeared "
    "coded words. {context}\nQuestion: Do not provide any explanation. Please ignore the dots '....'. What are the "
    "three most frequently appeared words in the above coded text?"
)
FREQUENT_PREFIX = " Answer: According to the coded text above, the three most frequently appeared words are:"

COMMON = 10  # words to be found
CODED_LETTERS = 6
TOKENS_PER_CODED_WORD = 50  # of the limit, for each different coded word
DOTS = "..."  # the most frequent "word", which does not count
ALPHA = 2.0  # the k-th word has a share of k^-ALPHA / zeta(ALPHA)
ZETA = math.pi**2 / 6  # zeta(2)
FEWEST = 53  # words from which on the fourth (third without the dots) is more frequent than the fifth


@dataclass(frozen=True)
class Frequencies:
    """How often each common word and each other one appears."""

    common: int
    other: int


@dataclass(frozen=True)
class _Setting:
    asked: Frequencies
    example: Frequencies
    example_words: int


SHORT_SETTING = _Setting(Frequencies(6, 1), Frequencies(3, 1), 20)
LONG_SETTING = _Setting(Frequencies(30, 3), Frequencies(10, 3), 40)


def common_puzzle(known: Sequence[str], limit: int, rng: random.Random) -> Puzzle:
    """A puzzle after a worked example; its size counts different words. They are easier below a limit of 4096."""
    setting = SHORT_SETTING if limit < LONG else LONG_SETTING
    example = _common(list(islice(different_words(known, rng), setting.example_words)), setting.example, rng)
    answers = " ".join(f"{number}. {word}" for number, word in enumerate(example.outputs, 1))
    coming, drawn = different_words(known, rng), list[str]()
    order = rng.getrandbits(64)

    def at(size: int) -> Sample:
        drawn.extend(islice(coming, max(0, size - len(drawn))))
        sample = _common(drawn[:size], setting.asked, random.Random(order))
        return Sample(f"{example.prompt} {answers}\n{sample.input}", sample.answer_prefix, sample.outputs)

    return Puzzle(COMMON, at)


def frequent_puzzle(limit: int, rng: random.Random) -> Puzzle:
    """A puzzle whose size is the number of words that zeta-distributed frequencies are rounded down from."""
    words = distinct(
        lambda: "".join(rng.choices(string.ascii_lowercase, k=CODED_LETTERS)),
        max(limit // TOKENS_PER_CODED_WORD, COMMON),
    )
    ranked = [DOTS, *words[1:]]
    order = rng.getrandbits(64)

    def at(size: int) -> Sample:
        text = [word for rank, word in enumerate(ranked, 1) for _ in range(int(size * rank**-ALPHA / ZETA))]
        random.Random(order).shuffle(text)
        return Sample(FREQUENT_TEMPLATE.format(context=" ".join(text)), FREQUENT_PREFIX, tuple(ranked[1:4]))

    return Puzzle(FEWEST, at)


def _common(words: Sequence[str], frequencies: Frequencies, rng: random.Random) -> Sample:
    common, others = words[:COMMON], words[COMMON:]
    listed = [*common] * frequencies.common + [*others] * frequencies.other
    rng.shuffle(listed)
    context = " ".join(f"{number}. {word}" for number, word in enumerate(listed, 1))
    return Sample(COMMON_TEMPLATE.format(context=context), COMMON_PREFIX, tuple(common))
