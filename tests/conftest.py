"""What all tests share: one thread, no network, a scratch checkout, small records."""

import os

os.environ.update(
    OMP_NUM_THREADS="1",
    OMP_WAIT_POLICY="PASSIVE",
    HF_HUB_OFFLINE="1",
    MLFLOW_DISABLE_TELEMETRY="true",
    TOKENIZERS_PARALLELISM="false",
)

import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tasks import artifacts
from tasks.params import Params, load_params

settings.register_profile("machine is shared", deadline=None)  # no test depends on time
settings.load_profile("machine is shared")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; children would ignore it too
    signal.signal(signal.SIGINT, signal.default_int_handler)

CHECKOUT = Path(__file__).parents[1]
LONGEST_FIRST = (  # of the files; begun late, one of them would keep a single process busy at the end
    "verl/test_verl_train.py",
    "test_serve.py",
    "verl/test_verl_launch.py",
    "test_ablation.py",
    "test_execution.py",
    "test_flows.py",
    "synthesis/test_synthesize_resume.py",
    "rewards/test_sandbox.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files; the tests of each stay in order."""
    places = {CHECKOUT / "tests" / name: place for place, name in enumerate(LONGEST_FIRST)}
    assert all(path.is_file() for path in places), "a file of LONGEST_FIRST was renamed"
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(autouse=True)
def _the_test_process_is_no_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages called inside a test must not tie the life of pytest to whatever thread started it."""
    monkeypatch.setattr(artifacts, "die_with_parent", lambda: None)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder with the active parameters; the current one during the test."""
    shutil.copy(CHECKOUT / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def params() -> Params:
    """The tiny profile."""
    return load_params(CHECKOUT / "infra/profiles/tiny.yaml")
