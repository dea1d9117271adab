import errno
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.cli import stage_command
from tasks.errors import InputError
from tasks.params import Params
from tests.conftest import CHECKOUT

NAMES = ("stage1", "stage2")


def nothing(*_: object) -> None:
    """A stage that does nothing."""


def run(argv: list[str], stage: Callable[..., None] = nothing, names: tuple[str, ...] | None = NAMES) -> None:
    stage_command("Train.", names, stage, argv)


def test_the_stage_gets_its_name_and_parameters(scratch: Path) -> None:
    seen: list[tuple[str, Params]] = []
    run(
        ["stage2", "--set", "seed=3", "--set", "rl.group_size=4"],
        lambda name, params: seen.append((name, params)),
    )
    ((name, params),) = seen
    assert (name, params.seed, params.rl.group_size) == ("stage2", 3, 4)


def test_a_stage_without_names_gets_parameters_only(scratch: Path) -> None:
    (scratch / "params.yaml").rename(scratch / "mine.yaml")
    seen: list[Params] = []
    run(["--params", "mine.yaml"], seen.append, names=None)
    assert seen[0].profile == "tiny"


def fails(argv: list[str], capsys: pytest.CaptureFixture[str], stage: Callable[..., None] = nothing) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        run(argv, stage)
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().err


def raiser(error: BaseException) -> Callable[..., None]:
    def stage(*_: object) -> None:
        raise error

    return stage


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["stage9"], "PipelineError: unknown stage 'stage9'; known: stage1, stage2\n"),
        (
            ["stage1", "--params", "no.yaml"],
            "ParameterError: no.yaml does not exist; run from the checkout or pass",
        ),
        (
            ["stage1", "--set", "seed=-1"],
            "ParameterError: params.yaml: seed = -1: Input should be greater than",
        ),
        (
            ["stage1", "--set", "sed=1"],
            "ParameterError: --set 'sed=1': unknown key 'sed'; known here: profile, seed",
        ),
    ],
)
def test_a_users_mistake_is_one_line_and_nothing_runs(
    scratch: Path, capsys: pytest.CaptureFixture[str], argv: list[str], line: str
) -> None:
    code, message = fails(argv, capsys, raiser(AssertionError("the stage ran")))
    assert code == 2
    assert message.startswith(line)
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("a.txt is empty;\n  remove it"), 2, "InputError: a.txt is empty; remove it\n"),
        (
            OSError(errno.ENOSPC, "No space", "a.bin"),
            2,
            "InputError: no space left on the disk for a.bin; free some",
        ),
        (OSError(errno.EDQUOT, "Quota"), 2, "InputError: no space left on the disk; free some"),
        (KeyboardInterrupt(), 130, "interrupted; run the same command to continue\n"),
    ],
)
def test_errors_of_a_running_stage(
    scratch: Path, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, line: str
) -> None:
    found, message = fails(["stage1"], capsys, raiser(error))
    assert found == code
    assert message.startswith(line)
    assert message.count("\n") == 1


@pytest.mark.parametrize("error", [ValueError("a defect"), PermissionError(errno.EACCES, "denied")])
def test_a_defect_keeps_its_traceback(scratch: Path, error: Exception) -> None:
    with pytest.raises(type(error)):
        run(["stage1"], raiser(error))


@pytest.mark.parametrize("argv", [[], ["stage1", "stage2"], ["stage1", "--sett", "a=1"], ["stage1", "--set"]])
def test_a_malformed_command_prints_its_usage(capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    code, message = fails(argv, capsys)
    assert code == 2
    assert message.startswith("usage: ")


def test_help_names_the_stages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(["--help"])
    assert caught.value.code == 0
    assert "one of stage1, stage2" in capsys.readouterr().out


def test_help_needs_the_standard_library_only() -> None:
    code = (
        "import sys\nfrom tasks.cli import stage_command\n"
        "try: stage_command('Train.', ('stage1',), print, ['--help'])\n"
        "finally: print(sorted({'pydantic', 'yaml', 'torch', 'mlflow', 'transformers'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "[]"


def test_an_interrupt_from_the_keyboard_ends_with_130() -> None:
    code = (
        "import signal, time\nfrom tasks.cli import stage_command\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background shell hands down "ignored"
        "stage_command('Wait.', None, lambda params: (print('started', flush=True), time.sleep(60)), [])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate()
    assert (process.returncode, message) == (130, "interrupted; run the same command to continue\n")
