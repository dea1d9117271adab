"""What a reader makes of a file: parts, each a document of its own, of text and tables in the order of the file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Grid:
    """A table as text: lines of cells, the header first. Merged cells repeat their value.

    `plain` is how it reads where it holds no counts. `strict`: the file is this table, so a broken one is an error;
    tables inside a document are text then.
    """

    lines: tuple[tuple[str, ...], ...]
    plain: str
    grouped: bool = True  # "1,234" may be a thousand
    strict: bool = False


Block = str | Grid


@dataclass(frozen=True)
class Part:
    """A document in a file; the only one has no name."""

    blocks: tuple[Block, ...]
    name: str = ""


@dataclass(frozen=True)
class Extract:
    """The parts of a file, how it was decoded, and remarks on what a reader guessed or had to leave out."""

    parts: tuple[Part, ...]
    encoding: str = ""  # of text formats
    dialect: str = ""  # of csv and tsv
    remarks: tuple[str, ...] = ()
    replaced: int = 0  # characters that cleaning already replaced or removed
    removed: int = 0
    breaks: int = 0  # line breaks that became "\n"


Reader = Callable[[Path], Extract]


def plain_table(lines: tuple[tuple[str, ...], ...]) -> str:
    """A table to be read by people and models; empty lines are left out."""
    return "\n".join(" | ".join(" ".join(cell.split()) for cell in line) for line in lines if any(line))


def grid(lines: list[tuple[str, ...]]) -> Grid:
    """A table inside a document; lines without any cell filled are left out, and so are empty columns at the end."""
    filled = [line for line in lines if any(cell.strip() for cell in line)]
    width = max((index for line in filled for index, cell in enumerate(line, 1) if cell.strip()), default=0)
    kept = tuple((line + ("",) * width)[:width] for line in filled)
    return Grid(kept, plain_table(kept))
