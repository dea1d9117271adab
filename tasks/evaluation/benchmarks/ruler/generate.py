"""Write RULER's files for a length, a tokenizer and a haystack of one's own: `python -m …ruler.generate --help`.

The essay is the pipeline's country documents unless --haystack names other text; questions on documents come from
--questions. The same arguments write the same bytes.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.cli import one_line_errors
from tasks.errors import InputError, ParameterError

if TYPE_CHECKING:
    from tasks.evaluation.benchmarks.ruler.subtasks import Material

TEXT_FILES = (".md", ".txt")
FILE = "validation.jsonl"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; what cannot be used ends it with one line on stderr and code 2."""
    options = _parser().parse_args(arguments)
    with one_line_errors():
        _generate(options)


def _generate(options: argparse.Namespace) -> None:
    from tasks.artifacts import write_text
    from tasks.evaluation.benchmarks.ruler.series import Series, check_room
    from tasks.evaluation.benchmarks.ruler.subtasks import WITHOUT_FILES
    from tasks.tokenization import ChatTokenizer

    if options.length < 1 or options.samples < 1:
        raise ParameterError(f"--length {options.length} and --samples {options.samples} must be positive")
    material = _material(options)
    known = (*WITHOUT_FILES, *material.questions)
    unknown = sorted(set(options.subtasks or ()) - set(known))
    if unknown:
        raise ParameterError(f"no subtask {unknown[0]!r}; known: {', '.join(known)} (qa_… with --questions)")
    tokenizer = ChatTokenizer.load(options.tokenizer)
    series = [Series(name, material, tokenizer, options.length, options.seed) for name in options.subtasks or known]
    check_room(series, options.samples)
    for one in series:
        path = options.out / str(options.length) / one.name / FILE
        write_text(path, "".join(f"{line}\n" for line in one.lines(options.samples)))
        print(f"{path}: {options.samples} samples", file=sys.stderr, flush=True)


def _material(options: argparse.Namespace) -> "Material":
    from tasks.evaluation.benchmarks.ruler.asking import read_questions
    from tasks.evaluation.benchmarks.ruler.subtasks import Material
    from tasks.evaluation.benchmarks.ruler.words import vocabulary

    essay = _text(options.haystack, options.seed).split()
    if not essay:
        raise InputError(f"{options.haystack} holds no text; name a file or folder of {' or '.join(TEXT_FILES)}")
    questions = [read_questions(path) for path in options.questions]
    return Material(essay, vocabulary(essay), {one.name: one for one in questions})


def _text(haystack: Path | None, seed: int) -> str:
    if haystack is None:
        from tasks.corpus.countries import load_countries
        from tasks.corpus.documents import country_drafts

        return "\n".join(draft.text for draft in country_drafts(load_countries(), seed))
    paths = (
        sorted(path for path in haystack.rglob("*") if path.suffix in TEXT_FILES) if haystack.is_dir() else [haystack]
    )
    try:
        return "\n".join(path.read_text("utf-8") for path in paths)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{haystack} cannot be read ({error}); give UTF-8 text") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tasks.evaluation.benchmarks.ruler.generate",
        description="Write RULER's subtasks at any length, in the official format (OUT/LENGTH/NAME/validation.jsonl).",
    )
    parser.add_argument(
        "--tokenizer", type=Path, default=Path("models/tiny-base"), help="HF model folder to count with"
    )
    parser.add_argument(
        "--length", type=int, required=True, help="tokens of prompt and reply; official: 4096 to 131072"
    )
    parser.add_argument("--samples", type=int, default=500, help="a subtask (500)")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--out", type=Path, default=Path("evaluation_sets/ruler"))
    parser.add_argument("--haystack", type=Path, help="text file, or folder of .txt and .md, for the essay")
    parser.add_argument(
        "--questions",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="SQuAD's or HotpotQA's JSON, or a run's data (data/curated/stage1.parquet); repeatable",
    )
    parser.add_argument("--subtasks", nargs="+", metavar="NAME", help="only these")
    return parser


if __name__ == "__main__":
    main()
