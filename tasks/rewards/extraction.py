"""What a reply states as its answer: read from the part after its reasoning, the last statement wins."""

import re
import string
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise

from tasks.records import Finish
from tasks.rewards.normalise import plain

_MARKER = re.compile(
    r"\banswers?\b(?:\s+to\b[^.?!\n]{0,80}?)?\s*"
    r"(?:(?:is|are|(?:seems|appears)\s+to\s+be|(?:would|should|must|could)\s+be)\b\s*[:：]?|[:：=])"
    r"|答案\s*(?:是|为|[:：])",
    re.IGNORECASE,
)
_BOX = re.compile(r"\\boxed\s*\{")
_BOX_JOINER = re.compile(r"\$?\s*(?:,|;|\band\b|,\s*and\b)?\s*\$?")
_ABBREVIATIONS = "".join(rf"(?<!\b{word})" for word in ("St", "Mt", "Dr", "Mr", "Mrs", "Ms", "Jr", "vs"))
_SENTENCE_END = re.compile(rf"(?<!\b[A-Za-z]){_ABBREVIATIONS}[.!?](?=\s)|[。\n]")
_FENCE = re.compile(r"^```[^\n`]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_FENCE_START = re.compile(r"^```[^\n`]*$", re.MULTILINE)
_LETTER = re.compile(
    r"[(\[]\s*(?P<bracketed>[A-Za-z])\s*[)\]]"
    r"|(?<![\w'.&-])(?P<bare>[A-Z])(?![\w'&]|\.\w)"
    r"|\A\s*(?P<small>[a-z])(?=\s*(?:[).:,;]|\Z))"
)
_RETRACTION = re.compile(r"\b(?:wait|hmm|no|actually|correction|sorry|scratch that)\b\s*[,.:;!—–…-]", re.IGNORECASE)
_REFUSED_BEFORE = re.compile(
    r"(?:\b(?:not|never|neither|nor|rather than|instead of|except)|n't)\s+"
    r"(?:be\s+)?(?:the\s+)?(?:option|answer|choice|letter)?\s*\Z",
    re.IGNORECASE,
)
_REFUSED_AFTER = re.compile(
    r"\s*\?|\s+(?:is|was|seems)\s+(?:\w+\s+)?(?:not|wrong|incorrect|refuted|false|excluded|eliminated)\b",
    re.IGNORECASE,
)
_EITHER = re.compile(r"\s*(?:,|/|,?\s*(?:or|and|&))\s*(?:option|answer|choice|letter)?\s*\Z", re.IGNORECASE)
LONGEST_REFUSAL = 60  # characters before a letter in which "not option" may stand
DEEPEST_BOX = 8  # \boxed{\boxed{7}}
_AFTER_ARTICLE = re.compile(r"\s+(?!(?:is|was|because|since|as|and|or|but|for|would|seems|fits|with|in|by)\b)[a-z]")


@dataclass(frozen=True)
class _Box:
    start: int
    end: int
    content: str


@dataclass(frozen=True)
class _Candidate:
    letter: str
    start: int
    end: int


def extract_answer(text: str, finish: Finish) -> str | None:
    r"""Return what the reply states as its answer, or None.

    Reasoning does not count: only what follows the last `</think>` (a template may have opened it). There the
    last statement wins: `\boxed{…}` with balanced braces (adjacent boxes are one list), or the sentence after
    "the answer is" or "Answer:". A reply cut by its token limit states an answer only after closed reasoning
    and in a closed box or sentence; "The answer is 12" may have been about to become 123.
    """
    shown = visible(text, finish)
    if shown is None:
        return None
    boxes, open_box = _boxes(shown)
    marker = _last(_MARKER.finditer(shown))
    if open_box is not None and (marker is None or open_box > marker.start()):
        return None
    if boxes and (marker is None or boxes[-1].start > marker.start()):
        return _cleaned(_joined(boxes, shown))
    return None if marker is None else _sentence(shown[marker.end() :], finish)


def extract_letter(text: str, finish: Finish, letters: Collection[str]) -> str | None:
    """Return the option letter that the reply chooses; None for none, two at once, or one that is no option.

    After "the answer is" the first letter counts, unless it is taken back ("(A)? No, (C)") or refused ("not
    A"); without it, the last letter of the reply. "A" before a lower-case word is an article, "I" a pronoun.
    """
    shown = visible(text, finish)
    if shown is None or _boxes(shown)[1] is not None:
        return None
    shown = re.sub(r"\\boxed\s*\{([^{}]*)\}", r"(\1)", plain(shown))
    marker = _last(_MARKER.finditer(shown))
    segment = shown[marker.end() :] if marker else shown
    for part in reversed(_RETRACTION.split(segment)):
        found = _candidates(part, marker is not None, finish)
        if marker is None:
            found = [candidate for candidate in found if candidate.letter in letters]
        if found:
            return _choice(found, part, letters, first=marker is not None)
    return None


def visible(text: str, finish: Finish) -> str | None:
    """The reply without its reasoning; None when a cut reply never closed it."""
    _, closed, rest = text.rpartition("</think>")
    if finish is Finish.TRUNCATED and not closed:
        return None
    return rest.partition("<think>")[0].replace("**", "")


def is_unfinished(text: str, finish: Finish) -> bool:
    """Whether a reply was cut, or ended in reasoning that was never closed."""
    return finish is Finish.TRUNCATED or "<think>" in text.rpartition("</think>")[2]


def extract_code(text: str, finish: Finish) -> str | None:
    """The last fenced block after the reasoning, None if it is open; without any fence what the reply states."""
    _, closed, rest = text.rpartition("</think>")
    if finish is Finish.TRUNCATED and not closed:
        return None
    shown = rest.partition("<think>")[0]
    if "```" not in shown:
        return extract_answer(text, finish)
    block = _last(_FENCE.finditer(shown))
    if block is None or _FENCE_START.search(shown, block.end()):
        return None
    return block[1].strip("\n") or None


def _choice(found: list[_Candidate], text: str, letters: Collection[str], *, first: bool) -> str | None:
    chosen = found[0] if first else found[-1]
    for left, right in pairwise(found):
        joined = _EITHER.fullmatch(text[left.end : right.start]) is not None
        if joined and chosen in (left, right) and left.letter != right.letter:
            return None
    return chosen.letter if chosen.letter in letters else None


def _candidates(text: str, marked: bool, finish: Finish) -> list[_Candidate]:
    found = []
    alone = text.strip(string.whitespace + string.punctuation)
    first = len(text) - len(text.lstrip(" :")) if marked else -1
    for match in _LETTER.finditer(text):
        letter = (match["bracketed"] or match["bare"] or match["small"]).upper()
        bare = match["bracketed"] is None
        cut = bare and finish is Finish.TRUNCATED and match.end() == len(text)
        if cut or (bare and _is_word(match, text, alone, first)):
            continue
        before = text[max(0, match.start() - LONGEST_REFUSAL) : match.start()]
        if _REFUSED_BEFORE.search(before) or _REFUSED_AFTER.match(text, match.end()):
            continue
        found.append(_Candidate(letter, match.start(), match.end()))
    return found


def _is_word(match: re.Match[str], text: str, alone: str, first: int) -> bool:
    """Whether a bare capital is the pronoun I or the article A rather than a letter.

    `alone` is the text without what surrounds it, `first` where it starts if it follows "the answer is", else -1.
    """
    if match["bare"] == "I":
        return alone != match[0].strip()
    at_start = match.start() == first
    return match["bare"] == "A" and not at_start and _AFTER_ARTICLE.match(text, match.end()) is not None


def _boxes(text: str) -> tuple[list[_Box], int | None]:
    """All closed boxes, and where an unclosed one starts."""
    boxes: list[_Box] = []
    position = 0
    while match := _BOX.search(text, position):
        end = _closing_brace(text, match.end())
        if end is None:
            return boxes, match.start()
        boxes.append(_Box(match.start(), end + 1, text[match.end() : end]))
        position = end + 1
    return boxes, None


def _closing_brace(text: str, start: int) -> int | None:
    depth = 1
    for index in range(start, len(text)):
        if text[index] in "{}" and text[index - 1] != "\\":
            depth += 1 if text[index] == "{" else -1
            if depth == 0:
                return index
    return None


def _joined(boxes: list[_Box], text: str) -> str:
    """The last box together with those right before it."""
    run = [_innermost(boxes[-1].content)]
    for left, right in zip(reversed(boxes[:-1]), reversed(boxes), strict=False):
        if not _BOX_JOINER.fullmatch(text, left.end, right.start):
            break
        run.append(_innermost(left.content))
    return ", ".join(reversed(run))


def _innermost(content: str) -> str:
    """The content of a box that holds nothing but a box."""
    for _ in range(DEEPEST_BOX):
        inner = _BOX.match(content.strip())
        if inner is None or _closing_brace(content.strip(), inner.end()) != len(content.strip()) - 1:
            break
        content = content.strip()[inner.end() : -1]
    return content


def _sentence(text: str, finish: Finish) -> str | None:
    text = text.lstrip(" \t\n:：=>")
    end = _SENTENCE_END.search(text)
    if end is None and finish is Finish.TRUNCATED:
        return None
    return _cleaned(text[: end.start()] if end else text)


def _cleaned(text: str) -> str | None:
    text = plain(text).strip(" \t\n\"'").rstrip(" .,;:!?\"'")  # not lstrip: ".5" is a number
    return text or None


def _last(matches: Iterable[re.Match[str]]) -> re.Match[str] | None:
    last = None
    for match in matches:
        last = match
    return last
