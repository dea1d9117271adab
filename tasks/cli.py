"""The command line that all stages share. Imports only the standard library, so that `--help` is instant."""

import argparse
import errno
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tasks.errors import PipelineError

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT


def stage_command(
    description: str,
    names: Sequence[str] | None,
    run: Callable[..., None],
    argv: Sequence[str] | None = None,
) -> None:
    """Parse the arguments, load the parameters, call `run(name, params)`, or `run(params)` without names.

    Raises:
        SystemExit: 2 after a one-line error, 130 after Ctrl-C. On success it returns.
    """
    options = _parser(description, names).parse_args(argv)
    with one_line_errors():
        arguments: list[Any] = []
        if names is not None:
            if options.name not in names:
                raise PipelineError(f"unknown stage {options.name!r}; known: {', '.join(names)}")
            arguments.append(options.name)
        from tasks.params import load_params  # pydantic: not for --help

        run(*arguments, load_params(options.params, tuple(options.overrides)))


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what a user can cause into one line on stderr and an exit code; let everything else propagate."""
    try:
        yield
    except PipelineError as error:
        _exit(EXIT_ERROR, f"{type(error).__name__}: {error}")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = f" for {error.filename}" if error.filename else ""
        _exit(EXIT_ERROR, f"InputError: no space left on the disk{where}; free some space and run again")
    except KeyboardInterrupt:
        _exit(EXIT_INTERRUPTED, "interrupted; run the same command to continue")


def _parser(description: str, names: Sequence[str] | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_program(), description=description)
    if names is not None:
        parser.add_argument("name", metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument(
        "--params",
        type=Path,
        default=Path("params.yaml"),
        metavar="FILE",
        help="parameter file (params.yaml)",
    )
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override one parameter, as in rl.group_size=4 (value in YAML; repeatable)",
    )
    return parser


def _program() -> str:
    """`python -m tasks.rl.train`, where argparse would show `train.py`."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    return f"python -m {module.name}" if module else Path(sys.argv[0]).name


def _exit(code: int, message: str) -> None:
    print(" ".join(message.split()), file=sys.stderr)
    raise SystemExit(code)
