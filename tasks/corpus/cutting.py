"""A file that is longer than a document is cut into several, each of which says what it is about.

Pieces of a text repeat its heading, pieces of a table its header: a value without the name of what it is a value of is
no fact.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from tasks.corpus.cleaning import pieces
from tasks.corpus.readers import Section

LONGEST_HEADING = 60  # characters of a first line that may be one without a mark
REPEATED_SHARE = 0.5  # of a document's tokens that a heading or header may take; a longer one is not repeated

_FIRST_LINE = re.compile(r"(?P<line>[^\n]+)(?P<gap>\n+)")
_MARKED = re.compile(r"#{1,6} +\S")
_NAMED = re.compile(
    r"^[^\n:]*\b(?:name|title|short form)\b[^\n:]*: +(?P<name>\w[^\n]{0,60})$", re.IGNORECASE | re.MULTILINE
)
_MARKDOWN_TABLE = re.compile(r"^(\|.*\|[ ]*\n\|[-:| ]+\|[ ]*(?:\n\|.*\|[ ]*$)+)", re.MULTILINE)

Count = Callable[[str], int]


def cut_sections(sections: Sequence[Section], limit: int, count: Count) -> list[str]:
    """Cut the texts and tables of a file into texts of at most `limit` tokens, in their order.

    What fits stays whole. Else a table is cut between rows, and a small one stays with the text before it. Lengths are
    added up as in `pieces`. Nothing is repeated that would take more than REPEATED_SHARE of a text.
    The heading of a record is the line that names it.
    """
    whole = "\n\n".join(section.text for section in sections)
    if count(whole) <= limit:
        return [whole] if whole else []
    heading, rest = _without_heading(sections)
    heading = heading or _naming_line(sections[0])
    room = limit - count(heading)
    if room < (1 - REPEATED_SHARE) * limit:
        heading, rest, room = "", sections, limit

    def headed(text: str) -> str:
        return text if f"\n{heading}" in f"\n{text}\n" else heading + text

    texts: list[str] = []
    for section in chain.from_iterable(map(_tables_apart, rest)):
        first, *others = _cut_section(section, room, count) or [""]
        if first and texts and count(texts[-1]) + count(f"\n\n{first}") <= limit:
            texts[-1] += f"\n\n{first}"
        elif first:
            texts.append(headed(first))
        texts += map(headed, others)
    return texts


def _without_heading(sections: Sequence[Section]) -> tuple[str, Sequence[Section]]:
    """The heading with the line breaks below it, or "", and what follows."""
    first, *others = sections
    match = None if first.header else _FIRST_LINE.match(first.text + "\n\n")
    rest = first.text[match.end() :] if match else ""
    if match is None or not _is_heading(match["line"], match["gap"], rest):
        return "", sections
    return match[0], [*([Section(rest)] if rest else []), *others]


def _is_heading(line: str, gap: str, rest: str) -> bool:
    """A marked line, or a short one that is neither a sentence, nor its beginning, nor a field of a record."""
    if _MARKED.match(line):
        return True
    if len(line) > LONGEST_HEADING or not line[0].isalnum() or line.rstrip().endswith(tuple(".,;:。")) or ": " in line:
        return False
    return len(gap) > 1 or not rest[:1].islower()


def _naming_line(section: Section) -> str:
    """Of a text that begins like a record, the "path > to > name: value" whose value it says most often, or ""."""
    if section.header or ": " not in section.text.partition("\n")[0]:
        return ""
    named = [match for match in _NAMED.finditer(section.text) if not match["name"][0].islower()]
    best = max(named, key=lambda match: section.text.count(match["name"]), default=None)
    return f"{best[0]}\n" if best else ""


def _tables_apart(section: Section) -> Iterator[Section]:
    """Markdown tables in a text as tables."""
    if section.header:
        yield section
        return
    for number, part in enumerate(_MARKDOWN_TABLE.split(section.text)):
        if text := part.strip():
            yield Section(text, header=2 * (number % 2))


def _cut_section(section: Section, limit: int, count: Count) -> list[str]:
    lines = section.text.split("\n")
    header = "".join(f"{line}\n" for line in lines[: section.header])
    room = limit - count(header)
    if not header or room < (1 - REPEATED_SHARE) * limit:
        return pieces(section.text, limit, count)
    return [header + text for text in _packed(lines[section.header :], room, count)]


def _packed(lines: Iterable[str], limit: int, count: Count) -> list[str]:
    """Lines in texts of at most `limit` tokens; a line that is longer is cut."""
    packed: list[list[str]] = []
    room = 0
    for line in lines:
        for part in [line] if count(line) <= limit else pieces(line, limit, count):
            length = count(f"{part}\n")
            if length > room or not packed:
                packed.append([])
                room = limit
            packed[-1].append(part)
            room -= length
    return ["\n".join(parts) for parts in packed]
