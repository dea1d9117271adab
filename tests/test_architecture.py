"""Layers and weight of the code itself."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT

HEAVY = {"mlflow", "torch", "transformers"}
VERBS = {
    "answer",
    "balance",
    "benchmark",
    "check",
    "curate",
    "evaluate",
    "generate",
    "ingest",
    "merge",
    "plan",
    "pretrain",
    "report",
    "synthesize",
    "train",
    "verify",
    "vet",
}
COMMANDS = sorted(
    ".".join(path.relative_to(CHECKOUT).with_suffix("").parts)
    for path in CHECKOUT.glob("tasks/*/**/*.py")
    if path.stem in VERBS
)
WITHOUT_PARAMETERS = {
    "tasks.base_model.pretrain",
    "tasks.evaluation.benchmarks.ruler.generate",
    "tasks.rewards.check",
    "tasks.rewards.code.vet",
}
NEEDED = {
    "tasks.evaluation.benchmark": ["models/tiny-base"],
    "tasks.filtering.curate": ["stage1"],
    "tasks.memory.answer": ["--file", "params.yaml", "--question", "Where?"],
    "tasks.rl.train": ["stage1"],
    "tasks.synthesis.synthesize": ["tables"],
}
# Runs a command as `python -m` would, and then says what it imported.
PROBE = """
import runpy, sys
module, *sys.argv[1:] = sys.argv[1:]
try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
except SystemExit as end:
    print("exit", end.code, sorted({heavy} & set(sys.modules)))
""".replace("{heavy}", repr(HEAVY))


def probe(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )


def test_layers_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    answer = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout[-4000:] + answer.stderr


def test_every_verb_is_a_command() -> None:
    assert {command.rpartition(".")[2] for command in COMMANDS} == VERBS


@pytest.mark.parametrize("command", [*COMMANDS, "tasks.lineage", "flows.ablation", "flows.post_training"])
def test_help_is_light(command: str) -> None:
    answer = probe(command, "--help")
    assert answer.stdout.startswith("usage: "), answer.stdout + answer.stderr
    assert answer.stdout.splitlines()[-1] == "exit 0 []"


@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in WITHOUT_PARAMETERS])
def test_bad_parameters_are_refused_before_anything_heavy_loads(command: str) -> None:
    answer = probe(command, *NEEDED.get(command, []), "--params", "no-such-file.yaml")
    assert answer.stdout.splitlines()[-1] == "exit 2 []", answer.stdout + answer.stderr
    assert answer.stderr.startswith("ParameterError: no-such-file.yaml does not exist")
    assert answer.stderr.count("\n") == 1
