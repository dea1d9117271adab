"""Which reader reads what, by the ending of the file's name."""

from pathlib import PurePath

from tasks.corpus.formats.base import Reader
from tasks.corpus.formats.delimited import read_delimited
from tasks.corpus.formats.docx import read_docx
from tasks.corpus.formats.html import read_html
from tasks.corpus.formats.jsons import read_json, read_jsonl
from tasks.corpus.formats.parquet import read_parquet
from tasks.corpus.formats.pdf import read_pdf
from tasks.corpus.formats.plain import read_plain
from tasks.corpus.formats.xlsx import read_xlsx
from tasks.errors import InputError

PLAIN = (
    "txt md markdown rst adoc tex org log "
    "py pyi c h cc cpp cxx hpp hh cu m mm rs go java kt kts scala groovy clj cs fs vb swift dart zig nim d "
    "js jsx mjs cjs ts tsx vue svelte css scss less php rb pl pm lua r jl hs ml mli ex exs erl el lisp scm "
    "sh bash zsh fish ps1 bat cmd sql graphql proto thrift cmake mk gradle bzl nix tf hcl dockerfile "
    "toml yaml yml ini cfg conf properties xml xsd f f90 f95 asm s v sv vhd sol tcl awk sed diff patch"
).split()
NAMES = frozenset("makefile dockerfile license licence readme notice authors changelog contributing copying".split())
READERS: dict[str, Reader] = {
    **{f".{ending}": read_plain for ending in PLAIN},
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".pdf": read_pdf,
    ".docx": read_docx,
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".xlsx": read_xlsx,
    ".xlsm": read_xlsx,
    ".json": read_json,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".parquet": read_parquet,
}
FORMATS = "txt, md, html, pdf, docx, csv, tsv, xlsx, json, jsonl, parquet and source code"
CONTENTS = (  # how files begin → what they are, which endings may
    (b"%PDF-", "a PDF", {".pdf"}),
    (b"PK\x03\x04", "a zip archive", {".docx", ".xlsx", ".xlsm"}),
    (b"PAR1", "a parquet file", {".parquet"}),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an encrypted or old Office file", set[str]()),
    (b"\x1f\x8b", "gzip data", set[str]()),
    (b"\x89PNG", "a PNG image", set[str]()),
    (b"\xff\xd8\xff", "a JPEG image", set[str]()),
    (b"GIF8", "a GIF image", set[str]()),
    (b"\x7fELF", "a program", set[str]()),
)
BINARY = {".pdf", ".docx", ".xlsx", ".xlsm", ".parquet"}
PREFACE = 1024  # bytes that a PDF may have before its mark


def reader_of(name: str) -> Reader:
    """The reader for a file of this name.

    Raises:
        InputError: its format is not read.
    """
    path = PurePath(name)
    if path.name.lower() in NAMES:
        return read_plain
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"not a format that is read: {path.suffix or 'no ending'}")
    return reader


def check_content(name: str, start: bytes) -> None:
    """Compare how a file begins with the ending of its name.

    Raises:
        InputError: it is something else.
    """
    suffix = PurePath(name).suffix.lower()
    for mark, what, suffixes in CONTENTS:
        if start.startswith(mark):
            if suffix not in suffixes:
                raise InputError(f"named {suffix or 'without ending'} but is {what}")
            return
    if suffix in BINARY and not (suffix == ".pdf" and b"%PDF-" in start):
        raise InputError(f"named {suffix} but does not begin like one")
