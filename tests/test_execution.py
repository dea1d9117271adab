"""Work gives the same results here and on Ray: squares, and then what the stages really send there."""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from pydantic import create_model

from tasks import execution
from tasks.artifacts import write_documents
from tasks.corpus.countries import load_countries
from tasks.corpus.documents import country_drafts
from tasks.corpus.library import Library
from tasks.errors import InputError, PipelineError
from tasks.execution import IN_FLIGHT, Workers, run_batches
from tasks.filtering import balance, examination, verify
from tasks.filtering.funnel import Outcome, Tally
from tasks.generation import models
from tasks.generation.base import Sampling
from tasks.generation.chat import Reply, Request, Unanswered
from tasks.params import Execution, GrammarWriter, LocalExecution, LocalWriter, Params, RayExecution, load_params
from tasks.records import Question, Split
from tasks.synthesis.facts import reading_questions
from tasks.synthesis.language import GrammarLanguage
from tests.conftest import CHECKOUT
from tests.generation.byte_models import write_folder

T = TypeVar("T")
U = TypeVar("U")
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


@pytest.fixture(scope="module")
def on_ray() -> Iterator[RayExecution]:
    """One Ray for all tests of this file."""
    ray = pytest.importorskip("ray")
    yield RAY
    ray.shutdown()


@pytest.fixture(scope="module", params=["local", "ray"])
def where(request: pytest.FixtureRequest) -> Execution:
    """Both ways in turn."""
    if request.param == "local":
        return LOCAL
    ray: RayExecution = request.getfixturevalue("on_ray")
    return ray


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


def test_workers_stay(where: Execution, make: Callable[[], Squares], tmp_path: Path) -> None:
    workers = Workers(make, where)
    for stream in ([], [1], range(20, 40), [], [3, 2]):
        assert [square for square, _ in workers.run(stream)] == [number**2 for number in stream]
    workers.close()
    assert len((tmp_path / "made").read_text().split()) == (where.workers if isinstance(where, RayExecution) else 1)


def test_workers_serve_on_after_a_stream_that_ended_early(where: Execution, make: Callable[[], Squares]) -> None:
    workers = Workers(make, where)
    left = workers.run(range(50, 90))
    assert next(left)[0] == 2500
    left.close()  # type: ignore[attr-defined]  # with tasks in flight, whose results nobody must get
    with pytest.raises(InputError):
        list(workers.run([12, 13, 15]))
    assert [square for square, _ in workers.run([7, 8])] == [49, 64]
    workers.close()


def test_a_stream_may_feed_another_of_the_same_workers(where: Execution, make: Callable[[], Squares]) -> None:
    """As a model's answer becomes its next question, with more of both than are in flight."""
    workers = Workers(make, where)
    numbers = range(100, 160)
    squares = (square for square, _ in workers.run(numbers))
    assert [fourth for fourth, _ in workers.run(squares)] == [number**4 for number in numbers]
    beside = [iter(workers.run(range(start, start + 20))) for start in (20, 50)]
    assert [(left[0], right[0]) for left, right in zip(*beside, strict=True)] == [
        (number**2, (number + 30) ** 2) for number in range(20, 40)
    ]
    workers.close()


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


# ── the stages


@pytest.fixture
def tiny(scratch: Path) -> Params:
    """The tiny profile with contexts of hundreds of tokens, so that a dozen questions are soon answered."""
    lengths = [f"rl.stages.stage{number}.max_input_tokens={128 * 2**number}" for number in (1, 2, 3)]
    weights = "rl.domain_weights={reading_comprehension: 1.0}"
    return load_params(
        overrides=(f"base_model={CHECKOUT / 'models/tiny-base'}", weights, "rl.batch_prompts=2", *lengths)
    )


@pytest.fixture
def questions(tiny: Params) -> list[Question]:
    """A dozen questions on the tiny profile's documents, which are written."""
    drafts = country_drafts(load_countries(), tiny.seed)
    regions = sorted({draft.cluster for draft in drafts})
    splits: dict[str, Split] = {region: "train" if place % 3 else "test" for place, region in enumerate(regions)}
    write_documents(verify.DOCUMENTS, [draft.document(splits[draft.cluster]) for draft in drafts])
    wanted: tuple[tuple[Split, int], ...] = (("train", 9), ("test", 3))
    library, language = Library.open(verify.DOCUMENTS), GrammarLanguage()
    harvests = [reading_questions(library, split, number, tiny.seed, language) for split, number in wanted]
    return [question for harvest in harvests for question in harvest.questions]


def verified(questions: list[Question], params: Params) -> dict[str, bytes]:
    """The files that verification writes; those of an earlier call are gone."""
    shutil.rmtree(verify.VERIFIED, ignore_errors=True)
    library = Library.open(verify.DOCUMENTS)
    dealt = verify.assign(questions, library, params.model_copy(update={"execution": LOCAL}))
    fates = list(dealt.dropped)
    verify.examine(dealt.assignments, fates, Tally(), library, params)
    verify.write_fates(verify.FATES, fates)
    assert {Outcome.KEPT, Outcome.NOT_ROBUST} == {fate.outcome for fate in fates}
    return {path.name: path.read_bytes() for path in verify.VERIFIED.iterdir()}


def test_verification_writes_the_same_bytes(
    tiny: Params, questions: list[Question], on_ray: RayExecution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(examination.BATCH, "torch", 3)  # more batches than workers
    here = verified(questions, tiny)
    assert set(here) == {"train.parquet", "development.parquet", "test.parquet", "fates.parquet"}
    assert verified(questions, tiny.model_copy(update={"execution": on_ray})) == here


def through_bytes(make_worker: Callable[[], Callable[[T], U]], tasks: Iterable[T], where: Execution) -> Iterator[U]:
    """What Ray does with workers, tasks and results, without its processes."""
    pickle = pytest.importorskip("ray.cloudpickle")
    assert isinstance(where, RayExecution)
    work = execution._RowWorker(pickle.loads(pickle.dumps(make_worker)))
    for task in tasks:
        result, error = pickle.loads(work({"task": [pickle.dumps(task)]})["result"][0])
        assert error is None
        yield result


def test_lengths_and_pass_rates_are_the_same_after_a_journey(
    tiny: Params, questions: list[Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other workers of these stages. They import and load what the verifier does, so no processes for them."""
    library = Library.open(verify.DOCUMENTS)
    dealt = verify.assign(questions, library, tiny)
    verify.examine(dealt.assignments, [], Tally(), library, tiny)
    rates = balance.measure(tiny)
    for module in (verify, balance):
        monkeypatch.setattr(module, "run_batches", through_bytes)
    elsewhere = tiny.model_copy(update={"execution": RAY})
    assert verify.assign(questions, library, elsewhere) == dealt
    assert balance.measure(elsewhere) == rates
    assert {rate.trials.drawn for rate in rates} == {tiny.filtering.robustness_samples}


def test_a_writer_gives_the_same_replies(scratch: Path, on_ray: RayExecution, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(models.BATCH, "transformers", 2)  # more batches than workers
    settings = {"type": "transformers", "model": write_folder(Path("model")), "context_tokens": 200}
    writer = LocalWriter.model_validate({**settings, "max_output_tokens": 40})
    made_here = create_model("Made", yes=(bool, ...))  # as schemas of tables are: no process elsewhere can import it
    schemas = (None, GrammarWriter, made_here)

    def replies(where: Execution) -> list[Reply | Unanswered]:
        chat = models.WorkerChat(writer, where, threads=1)
        asked = [Request(f"p{n}", Sampling(1.0, 1.0, 40), n, schemas[n % 3]) for n in range(7)]
        return [*chat.complete(iter(asked[:5])), *chat.complete(asked[5:])]  # as the rounds of a game

    here = replies(LOCAL)
    assert len({reply.text for reply in here if isinstance(reply, Reply)}) > 1
    assert replies(on_ray) == here
