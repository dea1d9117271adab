import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tasks import execution
from tasks.errors import InputError, PipelineError
from tasks.execution import IN_FLIGHT, run_batches
from tasks.params import Execution, LocalExecution, RayExecution

LOCAL = LocalExecution(type="local", sampler="torch")
RAY = RayExecution(type="ray", sampler="torch", address=None, workers=2, gpus_per_worker=0)


class Squares:
    """Squares numbers; 13 and 14 are refused. `made` is a file with a line for each worker made."""

    def __init__(self, made: Path) -> None:
        with made.open("a") as file:
            file.write(f"{os.getpid()}\n")

    def __call__(self, number: int) -> tuple[int, bytes]:
        if number == 13:
            raise InputError("13 is unlucky; leave it out")
        if number == 14:
            raise ZeroDivisionError(number)
        return number**2, b"x" * (number % 7)


@pytest.fixture(scope="module", params=["local", "ray"])
def where(request: pytest.FixtureRequest) -> Iterator[Execution]:
    """Both ways in turn; one Ray for all tests of this file."""
    if request.param == "local":
        yield LOCAL
        return
    ray = pytest.importorskip("ray")
    yield RAY
    ray.shutdown()


@pytest.fixture
def make(tmp_path: Path) -> Callable[[], Squares]:
    return partial(Squares, tmp_path / "made")


def test_results_come_in_order_one_a_task(where: Execution, make: Callable[[], Squares], tmp_path: Path) -> None:
    results = list(run_batches(make, (number for number in range(200) if number not in (13, 14)), where))
    assert results == [(number**2, b"x" * (number % 7)) for number in range(200) if number not in (13, 14)]
    workers = (tmp_path / "made").read_text().split()
    if isinstance(where, RayExecution):
        assert len(workers) == len(set(workers)) == where.workers
        assert str(os.getpid()) not in workers
    else:
        assert workers == [str(os.getpid())]


def test_tasks_are_drawn_as_results_are_taken(where: Execution, make: Callable[[], Squares]) -> None:
    drawn = []
    tasks = (drawn.append(number) or number for number in range(100, 300))
    results = run_batches(make, tasks, where)
    most = IN_FLIGHT * where.workers if isinstance(where, RayExecution) else 1
    assert drawn == []
    for taken, result in enumerate(results, 1):
        assert result[0] == (99 + taken) ** 2
        assert len(drawn) <= taken - 1 + most
        if taken == 50:
            break
    results.close()  # type: ignore[attr-defined]
    assert len(drawn) < 200


def test_the_error_of_a_worker_is_raised_as_it_was(where: Execution, make: Callable[[], Squares]) -> None:
    results = run_batches(make, [11, 12, 13, 15], where)
    assert [next(results)[0], next(results)[0]] == [121, 144]
    with pytest.raises(InputError) as refused:
        next(results)
    assert str(refused.value) == "13 is unlucky; leave it out"


def test_an_error_that_no_user_caused_brings_its_traceback(make: Callable[[], Squares]) -> None:
    pickle = pytest.importorskip("ray.cloudpickle")
    row = execution._RowWorker(make)({"task": [pickle.dumps(14)]})
    _, error = pickle.loads(row["result"][0])
    assert isinstance(error, ZeroDivisionError)
    assert "raise ZeroDivisionError(number)" in error.__notes__[0]


def test_without_tasks_no_worker_is_made(where: Execution, make: Callable[[], Squares], tmp_path: Path) -> None:
    assert list(run_batches(make, [], where)) == []
    assert not (tmp_path / "made").exists()


class Unreadable(Exception):
    """Pickles, and cannot be read back."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


def test_an_error_that_cannot_travel_is_told_in_words() -> None:
    pickle = pytest.importorskip("ray.cloudpickle")
    _, error = pickle.loads(execution._pickled(Unreadable("a", "b")))
    assert isinstance(error, RuntimeError)
    assert "Unreadable: ab" in str(error)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "localhost:", "http://localhost:1"])
def test_a_cluster_that_does_not_answer_is_an_error_at_once(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(PipelineError, match=f"no Ray cluster answers at execution.address = {address} "):
        list(run_batches(int, [1], RAY.model_copy(update={"address": address})))  # type: ignore[arg-type]


def test_ray_that_is_missing_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(PipelineError, match=r'pip install "posttrain-flows\[ray\]"'):
        list(run_batches(int, [1], RAY))  # type: ignore[arg-type]
