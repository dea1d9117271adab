"""What a cluster is given: every file parses, versions, sizes and commands agree with the rest of the repository."""

import importlib.metadata
import os
import re
import shlex
import stat
import subprocess
import tomllib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tasks.params import RL_STAGES, Params, load_params

ROOT = Path(__file__).parents[1]
PROFILE = ROOT / "infra/profiles/qwen3-30b-a3b.yaml"
DOCKERFILE = ROOT / "infra/ray/Dockerfile"
START = ROOT / "infra/ray/start.sh"
SBATCH = ROOT / "infra/slurm/stage.sbatch"
MANIFESTS = sorted((ROOT / "infra/kubernetes").glob("*.yaml"))
GUIDE = ROOT / "docs/operations.md"
SHIPPED = [DOCKERFILE, START, SBATCH, *MANIFESTS, ROOT / "constraints-gpu.txt", GUIDE]

OVERRIDDEN = {"torch", "transformers", "numpy"}  # verl and vLLM pin others than ours
ABSENT = {"prefect"}  # does not install beside vLLM
EXTRAS = ("vllm", "fsdp", "megatron", "verl-core", "flash-attn-cu130torch211", "cupy-cu130")  # verl's, in the image
CPUS_PER_GPU = 3  # verl's placement groups


# ── versions ──


@cache
def gpu_versions() -> dict[str, str]:
    """The list's versions; each package once, with one exact version."""
    lines = [line for line in (ROOT / "constraints-gpu.txt").read_text("utf-8").splitlines() if line[:1] not in "#"]
    versions = {}
    for requirement in map(Requirement, lines):
        (exact,) = requirement.specifier
        name = canonicalize_name(requirement.name)
        assert exact.operator == "==" and name not in versions, requirement
        versions[name] = exact.version
    return versions


def image_versions() -> dict[str, str]:
    """What the Dockerfile installs by name, besides the list."""
    found = re.findall(r"\b([a-z][a-z-]+)==([\w.]+)", DOCKERFILE.read_text("utf-8"))
    (core,) = re.findall(r"Megatron-LM\.git@core_v([\d.]+)", DOCKERFILE.read_text("utf-8"))
    return {**dict(found), "megatron-core": core}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_gpu_list_satisfies_this_project_and_its_verl_extra():
    needed = [*project()["dependencies"], *project()["optional-dependencies"]["verl"]]
    for requirement in map(Requirement, needed):
        name = canonicalize_name(requirement.name)
        if name in ABSENT:
            assert name not in gpu_versions()
        elif name not in OVERRIDDEN:
            assert requirement.specifier.contains(gpu_versions()[name]), requirement


def test_the_list_is_for_a_python_of_ours():
    assert Requirement(f"python{project()['requires-python']}").specifier.contains("3.12")


def test_the_overrides_are_needed():
    own = {canonicalize_name(r.name): r for r in map(Requirement, project()["dependencies"])}
    for name in OVERRIDDEN:
        assert not own[name].specifier.contains(gpu_versions()[name]), f"{name} is no exception any more"


def test_the_image_has_verls_own_gpu_pins():
    verl = Requirement(next(r for r in project()["optional-dependencies"]["verl"] if r.startswith("verl=")))
    if find_spec("verl") is None:
        pytest.skip("needs the verl extra: pip install 'posttrain-flows[verl]'")
    assert verl.specifier.contains(importlib.metadata.version("verl"))
    installed = {**gpu_versions(), **image_versions()}
    for requirement in map(Requirement, importlib.metadata.requires("verl") or ()):
        wanted = requirement.marker is None or any(requirement.marker.evaluate({"extra": e}) for e in EXTRAS)
        if wanted and requirement.name != "verl":
            assert requirement.specifier.contains(installed[canonicalize_name(requirement.name)]), requirement


def test_list_and_image_do_not_disagree():
    both = gpu_versions().keys() & image_versions().keys()
    assert "flash-attn" in both
    assert all(gpu_versions()[name] == image_versions()[name] for name in both)


def test_kubernetes_starts_the_listed_ray():
    assert rayjob()["spec"]["rayClusterSpec"]["rayVersion"] == gpu_versions()["ray"]


# ── Kubernetes ──


def objects() -> dict[str, dict[str, Any]]:
    loaded = [document for file in MANIFESTS for document in yaml.safe_load_all(file.read_text("utf-8"))]
    return {document["kind"]: document for document in loaded}


def rayjob() -> dict[str, Any]:
    return objects()["RayJob"]


def groups() -> tuple[dict[str, Any], dict[str, Any]]:
    cluster = rayjob()["spec"]["rayClusterSpec"]
    (workers,) = cluster["workerGroupSpecs"]
    return cluster["headGroupSpec"], workers


def container(group: dict[str, Any]) -> dict[str, Any]:
    (only,) = group["template"]["spec"]["containers"]
    return only


def test_the_workers_are_the_profiles_nodes():
    cluster, (_, workers) = load_params(PROFILE).cluster, groups()
    assert {workers[key] for key in ("replicas", "minReplicas", "maxReplicas")} == {cluster.nodes}
    for kind in ("limits", "requests"):
        resources = container(workers)["resources"][kind]
        assert int(resources["nvidia.com/gpu"]) == cluster.gpus_per_node
        assert int(resources["cpu"]) > CPUS_PER_GPU * cluster.gpus_per_node


def test_head_and_workers_see_one_image_environment_and_storage():
    head, workers = groups()
    for key in ("image", "envFrom", "volumeMounts"):
        assert container(head)[key] == container(workers)[key]
    assert head["template"]["spec"]["volumes"] == workers["template"]["spec"]["volumes"]
    mounted = {mount["name"] for mount in container(head)["volumeMounts"]}
    assert mounted == {volume["name"] for volume in head["template"]["spec"]["volumes"]}


def test_the_manifests_name_each_other():
    head, _ = groups()
    volumes = {volume["name"]: volume for volume in head["template"]["spec"]["volumes"]}
    claim = volumes["shared"]["persistentVolumeClaim"]["claimName"]
    assert claim == objects()["PersistentVolumeClaim"]["metadata"]["name"]
    sources = {kind: source["name"] for entry in container(head)["envFrom"] for kind, source in entry.items()}
    assert sources["configMapRef"] == objects()["ConfigMap"]["metadata"]["name"]
    assert f"create secret generic {sources['secretRef']}" in GUIDE.read_text("utf-8")


def test_the_job_is_a_stage_of_valid_parameters(monkeypatch):
    for name, value in objects()["ConfigMap"]["data"].items():
        monkeypatch.setenv(name, value)
    folder, command = rayjob()["spec"]["entrypoint"].split(" && ")
    mount = next(m["mountPath"] for m in container(groups()[0])["volumeMounts"] if m["name"] == "shared")
    assert folder.startswith(f"cd {mount}/")
    stage, params = stage_of(shlex.split(os.path.expandvars(command.removeprefix("exec "))))
    assert stage in RL_STAGES and stage in rayjob()["metadata"]["name"]
    assert params.tracking.uri == objects()["ConfigMap"]["data"]["MLFLOW_TRACKING_URI"]
    assert params.cluster.checkpoint_uri == objects()["ConfigMap"]["data"]["CHECKPOINT_URI"]


def stage_of(command: list[str]) -> tuple[str, Params]:
    """The RL stage that a command trains, with its parameters as the stage will load them."""
    assert command[:3] == ["python", "-m", "tasks.rl.train"]
    options = list(zip(command[4::2], command[5::2], strict=True))
    assert {option for option, _ in options} <= {"--params", "--set"}
    (profile,) = (value for option, value in options if option == "--params")
    overrides = tuple(value for option, value in options if option == "--set")
    return command[3], load_params(ROOT / profile, overrides)


# ── scripts ──


def run(script: Path, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script with stand-ins for `ray` and `srun` that print their arguments, one a line."""
    for name in ("ray", "srun"):
        (folder / name).write_text('#!/bin/sh\nprintf "%s\\n" "$0" "$@"\n')
        (folder / name).chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    return subprocess.run(
        [script, *arguments], env={"PATH": path, **environment}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("script", [START, SBATCH], ids=lambda script: script.name)
def test_scripts_parse_and_can_be_started(script):
    subprocess.run(["bash", "-n", script], check=True)
    assert script.stat().st_mode & stat.S_IXUSR


def test_slurm_asks_for_the_profiles_nodes():
    asked = dict(re.findall(r"^#SBATCH --([a-z-]+)=(\S+)$", SBATCH.read_text("utf-8"), re.MULTILINE))
    cluster = load_params(PROFILE).cluster
    assert (int(asked["nodes"]), int(asked["gpus-per-node"])) == (cluster.nodes, cluster.gpus_per_node)
    assert asked["ntasks-per-node"] == "1"  # one Ray a node


def test_slurm_starts_ray_everywhere_and_the_stage_on_the_first_node(tmp_path):
    slurm = {"SLURM_NNODES": "4", "SLURM_CPUS_ON_NODE": "96", "HEAD_ADDRESS": "10.0.0.7"}
    done = run(SBATCH, tmp_path, "memory", "--set", "tracking.uri=http://host:5000", **slurm)
    assert done.returncode == 0, done.stderr
    words = done.stdout.splitlines()
    start, command = words[: words.index("--")], words[words.index("--") + 1 :]
    assert "--cpus-per-task=96" in start
    assert start[start.index("ray") :] == (
        "ray symmetric-run --address 10.0.0.7:6379 --min-nodes 4 --num-cpus 96".split()
    )
    stage, params = stage_of(command)
    assert (stage, params.profile, params.tracking.uri) == ("memory", "qwen3-30b-a3b", "http://host:5000")


def test_slurm_needs_a_stage(tmp_path):
    refused = run(SBATCH, tmp_path, SLURM_NNODES="4", SLURM_CPUS_ON_NODE="96")
    assert refused.returncode != 0 and "name the RL stage" in refused.stderr and not refused.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["head", "--num-cpus=0"], "start --block --head --port=6379 --dashboard-host=0.0.0.0 --num-cpus=0"),
        (["worker", "host"], "start --block --address=host:6379"),
    ],
)
def test_ray_is_started_with_the_token(tmp_path, arguments, expected):
    done = run(START, tmp_path, *arguments, RAY_AUTH_TOKEN="secret")
    assert done.stdout.splitlines()[1:] == expected.split()
    assert "secret" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "token", "remedy"),
    [
        (["head"], "", "openssl rand"),
        ([], "secret", "head | worker HOST"),
        (["worker"], "secret", "name the head"),
    ],
)
def test_ray_is_not_started_without_token_or_role(tmp_path, arguments, token, remedy):
    refused = run(START, tmp_path, *arguments, RAY_AUTH_TOKEN=token)
    assert refused.returncode != 0 and remedy in refused.stderr and not refused.stdout


# ── all of it ──


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_commands_are_modules_and_paths_are_files(file):
    text = file.read_text("utf-8")
    for module in re.findall(r"python -m ((?:tasks|flows)(?:\.\w+)+)", text):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module
    for path in re.findall(r"\b(?:infra|docs|tests)/[\w./-]+\.(?:yaml|sh|sbatch|md|py)\b", text):
        assert (ROOT / path).is_file(), path


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_no_file_holds_a_secret(file):
    values = re.findall(r"(?:SECRET_ACCESS_KEY|ACCESS_KEY_ID|PASSWORD|AUTH_TOKEN)=(\S*)", file.read_text("utf-8"))
    assert all(value.startswith(("…", "$(")) for value in values)


def test_no_manifest_holds_a_secret():
    assert "Secret" not in objects()
    assert not re.search("SECRET|ACCESS_KEY|PASSWORD|TOKEN", " ".join(objects()["ConfigMap"]["data"]))


def test_every_parameter_that_the_guide_sets_exists():
    named = set(re.findall(r"--set ([\w.]+)=", GUIDE.read_text("utf-8")))
    named |= set(re.findall(r"`((?:cluster|tracking|rl)\.[\w.]+)`", GUIDE.read_text("utf-8")))
    assert {"cluster.address", "tracking.uri"} <= named
    for key in named:
        tree: Any = load_params(PROFILE).model_dump()
        for part in key.split("."):
            assert part in tree, key
            tree = tree[part]
