"""Records of json, jsonl and parquet files: documents of their own, or the lines of one table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tasks.corpus.formats.base import Grid, Part, plain_table
from tasks.corpus.formats.cells import cell_text

TEXT_FIELDS = ("text", "content", "document", "body")  # what data sets call a document's text
NESTED = (dict, list, tuple)

Record = Mapping[str, object]


def parts_of(records: Sequence[Record]) -> tuple[Part, ...]:
    """Records that all hold a text are documents, flat ones are a table, others are written out one by one."""
    field = next((name for name in TEXT_FIELDS if all(isinstance(record.get(name), str) for record in records)), None)
    if field is not None:
        return tuple(Part((str(record[field]),), str(number)) for number, record in enumerate(records, 1))
    if any(isinstance(value, NESTED) for record in records for value in record.values()):
        return tuple(Part((written_out(record),), str(number)) for number, record in enumerate(records, 1))
    return (Part((_table(records),)),)


def _table(records: Sequence[Record]) -> Grid:
    names = list(dict.fromkeys(name for record in records for name in record))
    lines = (tuple(names), *(tuple(cell_text(record.get(name)) for name in names) for record in records))
    return Grid(lines, plain_table(lines))


def written_out(value: object) -> str:
    """A nested value as lines "path > to > it: value", in its order."""
    return "\n".join(f"{path}: {text}" if path else text for path, text in _leaves(value, ""))


def _leaves(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path} > {name}" if path else str(name))
    elif isinstance(value, list | tuple) and _nested(value):
        for number, inner in enumerate(value, 1):
            yield from _leaves(inner, f"{path} > {number}" if path else str(number))
    elif isinstance(value, list | tuple):
        yield path, "; ".join(cell_text(inner) for inner in value)
    else:
        yield path, cell_text(value)


def _nested(values: Iterable[object]) -> bool:
    return any(isinstance(value, (Mapping, *NESTED)) for value in values)
