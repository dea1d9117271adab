"""dvc.yaml, params.yaml, the flows and the stage commands, held together.

One name everywhere: a DVC stage is run by one Prefect task run and one command, on what it declares and
nothing else.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasks.params import RL_STAGES, Params, load_params

ROOT = Path(__file__).parents[1]
# What commands import and no result depends on: messages, the command line, where, logging, who trained what.
# Parameters are declared value by value instead of by the file that parses them.
PLUMBING = frozenset(f"tasks.{name}" for name in ("errors", "cli", "params", "execution", "tracking", "lineage", "s3"))
VERBS = {"rl": "train"}  # a stage is called as its command's verb; "rl" is the recipe's own word
BY_NAME = {  # what verl loads by its name
    "tasks.rl.engines.verl.launch": [
        f"tasks.rl.engines.verl.{name}" for name in ("agent", "cpu", "dataset", "rollout", "trainer", "upload")
    ]
}
UNDECLARED = frozenset({"tracking", "cluster", "base_model"})  # where; and a path, declared as a dependency


@dataclass(frozen=True)
class Stage:
    """A stage as DVC resolves it."""

    name: str
    command: str
    deps: tuple[str, ...]
    params: tuple[str, ...]
    outs: tuple[str, ...]

    @property
    def module(self) -> str:
        return self.command.split()[3]

    @property
    def code(self) -> tuple[str, ...]:
        return tuple(dep for dep in self.deps if dep.startswith("tasks/"))

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(dep for dep in self.deps if not dep.startswith("tasks/"))


@cache
def stages() -> dict[str, Stage]:
    from dvc.repo import Repo

    with Repo(str(ROOT)) as repo:
        return {stage.name: _resolved(stage) for stage in repo.stage.load_all()}


def _resolved(stage: Any) -> Stage:
    plain = [dep for dep in stage.deps if not hasattr(dep, "params")]
    params = [name for dep in stage.deps if hasattr(dep, "params") for name in dep.params]
    outs = tuple(out.def_path for out in stage.outs)
    return Stage(stage.name, stage.cmd, tuple(dep.def_path for dep in plain), tuple(params), outs)


def covers(path: str, other: str) -> bool:
    return other == path or other.startswith(f"{path}/")


def producers(stage: Stage) -> set[str]:
    return {other.name for other in stages().values() for out in other.outs for dep in stage.inputs if covers(out, dep)}


# ── stages and commands


def test_every_command_is_a_module_called_as_its_stage():
    for stage in stages().values():
        area, _, key = stage.name.partition("@")
        assert re.fullmatch(r"exec python -m tasks(\.\w+){2}( \w+)?", stage.command)
        assert stage.command.split()[4:] == ([key] if key else [])
        assert stage.module.rsplit(".", 1)[1] == VERBS.get(area, area)
        assert (ROOT / (stage.module.replace(".", "/") + ".py")).is_file(), stage.module


def test_every_rl_stage_is_curated_and_trained():
    for verb in ("curate", "rl"):
        assert {name.partition("@")[2] for name in stages() if name.startswith(f"{verb}@")} == set(RL_STAGES)


def test_the_models_follow_the_recipe():
    base = str(load_params(ROOT / "params.yaml").base_model)
    start = {
        "stage1": base,
        "stage2": "checkpoints/stage1",
        "stage3": "checkpoints/stage2",
        "memory": "checkpoints/stage3",
        "stage4": "checkpoints/merged",
    }
    for name, model in start.items():
        for verb in ("curate", "rl"):
            models = [dep for dep in stages()[f"{verb}@{name}"].inputs if not dep.startswith("data/")]
            assert models == [model]
    merge = stages()["merge"]
    assert set(merge.inputs) == {base, "checkpoints/stage3", "checkpoints/memory"}


def test_metrics_are_named_after_their_stage():
    for stage in stages().values():
        metrics = [out for out in stage.outs if out.startswith("metrics/")]
        expected = f"metrics/{stage.name.replace('@', '-')}.json"
        assert metrics in ([], [expected], ["metrics/evaluation.json"])


# ── dependencies


def test_every_dependency_exists_or_is_made_by_another_stage():
    made = [out for stage in stages().values() for out in stage.outs]
    for stage in stages().values():
        for dep in stage.inputs:
            given = dep in (str(load_params(ROOT / "params.yaml").base_model), "documents") and (ROOT / dep).is_dir()
            assert given or any(covers(out, dep) for out in made), f"{stage.name}: {dep}"
        for dep in stage.code:
            assert (ROOT / dep).exists(), f"{stage.name}: {dep}"


def test_no_two_stages_write_the_same_place():
    outs = [out for stage in stages().values() for out in stage.outs]
    assert [(a, b) for a in outs for b in outs if a != b and covers(a, b)] == []
    assert len(outs) == len(set(outs))


@pytest.mark.parametrize("name", sorted(stages()))
def test_a_stage_depends_on_the_code_that_decides_its_result(name):
    stage = stages()[name]
    needed = {module for module in closure(stage.module) if module not in PLUMBING}
    paths = {module: module.replace(".", "/") + ".py" for module in needed}
    missing = {path for path in paths.values() if not any(covers(dep, path) for dep in stage.code)}
    assert missing == set(), "its command imports these"
    idle = [dep for dep in stage.code if not any(covers(dep, path) for path in paths.values())]
    assert idle == [], "its command does not import these"


@cache
def imports(module: str) -> frozenset[str]:
    """Our modules that a module imports, lazily or not; imports for type checking do not run."""
    tree = ast.parse((ROOT / (module.replace(".", "/") + ".py")).read_text("utf-8"))
    return frozenset(name for node in _running(tree) for name in _names(node) if _is_module(name))


def _running(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _running(child)


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def _is_module(name: str) -> bool:
    return name.startswith("tasks.") and (ROOT / (name.replace(".", "/") + ".py")).is_file()


def closure(module: str) -> set[str]:
    found, waiting = set[str](), {module}
    while waiting:
        found |= waiting
        waiting = {name for known in waiting for name in (*imports(known), *BY_NAME.get(known, ()))} - found
    return found


# ── parameters


def test_every_declared_parameter_exists():
    tree = yaml.safe_load((ROOT / "params.yaml").read_text("utf-8"))
    for stage in stages().values():
        for name in stage.params:
            node = tree
            for part in name.split("."):
                assert part in node, f"{stage.name}: {name}"
                node = node[part]


def test_params_yaml_reads_the_same_for_dvc_and_for_us():
    from dvc.utils.serialize import load_yaml

    ours = load_params(ROOT / "params.yaml").model_dump(mode="json")
    assert Params.model_validate(load_yaml(str(ROOT / "params.yaml"))).model_dump(mode="json") == ours


@pytest.mark.parametrize("module", sorted({stage.module for stage in stages().values()}))
def test_a_command_reads_no_section_that_its_stages_do_not_declare(module):
    source = (ROOT / (module.replace(".", "/") + ".py")).read_text("utf-8")
    read = {section for section in Params.model_fields if re.search(rf"\bparams\.{section}\b", source)}
    own = [stage for stage in stages().values() if stage.module == module]
    declared = {param.partition(".")[0] for stage in own for param in stage.params}
    assert read - UNDECLARED - declared == set()


def test_the_limits_of_one_rl_stage_make_no_other_stage_stale():
    for name in RL_STAGES:
        trained = {stage.name for stage in stages().values() if f"rl.stages.{name}.steps" in stage.params}
        assert trained == {f"rl@{name}"}
    agents = {stage.name for stage in stages().values() if "memory" in stage.params}
    assert agents == {"curate@memory", "rl@memory", "evaluate"}
    assert not any({"rl", "rl.stages"} & set(stage.params) for stage in stages().values())


# ── flows


def reproduced_by_flows(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stages that the top flow reproduces, in order, without Prefect and without DVC."""
    from flows import evaluation, full_context_rl, memory_branch, merging, post_training, synthesis
    from flows.checkout import Run
    from flows.request import PipelineRequest

    seen: list[str] = []
    run = Run(name="r", folder=ROOT)
    for module in (synthesis, full_context_rl, memory_branch, merging, evaluation):
        monkeypatch.setattr(module, "reproduce", lambda stage, run: seen.append(stage))
    for name in ("synthesis", "full_context_rl", "memory_branch", "merging", "fusion_rl", "evaluation"):
        monkeypatch.setattr(post_training, name, getattr(post_training, name).fn)
    monkeypatch.setattr(post_training, "sweep_dead_runs", lambda: None)
    monkeypatch.setattr(post_training, "open_run", lambda request, name: run)
    monkeypatch.chdir(ROOT)
    post_training.post_training.fn(PipelineRequest())
    return seen


def test_the_flow_runs_every_stage_once_after_what_it_needs(monkeypatch):
    order = reproduced_by_flows(monkeypatch)
    assert sorted(order) == sorted(stages())
    for place, name in enumerate(order):
        assert producers(stages()[name]) <= set(order[:place]), name


def test_dvc_and_the_request_form_know_the_same_stages():
    from flows.request import stage_names

    assert sorted(stage_names(ROOT / "dvc.yaml")) == sorted(stages())
