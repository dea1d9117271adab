"""The parameters name the model; workers elsewhere reply as one here does."""

import pickle
from pathlib import Path

import pytest

from tasks.errors import CheckpointError, ParameterError
from tasks.generation import models
from tasks.generation.base import Sampling
from tasks.generation.chat import Reply, Request
from tasks.generation.huggingface import TransformersGenerator
from tasks.generation.local import LocalGenerator
from tasks.generation.models import open_generator, open_writer
from tasks.params import GrammarWriter, LocalExecution, Params
from tasks.records import Finish
from tests.conftest import CHECKOUT
from tests.generation.byte_models import write_folder
from tests.generation.server import completion, serving, writer

HERE = LocalExecution(type="local", sampler="torch")


def written_by(params: Params, writer: object, execution: object = HERE) -> Params:
    synthesis = params.synthesis.model_copy(update={"writer": writer})
    return params.model_copy(update={"synthesis": synthesis, "execution": execution})


def local_writer(model: Path, kind: str = "transformers") -> models.LocalWriter:
    settings = {"type": kind, "model": model, "context_tokens": 200, "max_output_tokens": 40}
    return models.LocalWriter.model_validate(settings)


def requests(number: int) -> list[Request]:
    """Half of them held to a schema that processes elsewhere can import, too."""
    return [Request(f"p{n}", Sampling(1.0, 1.0, 40), n, GrammarWriter if n % 2 else None) for n in range(number)]


def test_the_sampler_is_the_one_named():
    folder = CHECKOUT / "models/tiny-base"
    assert isinstance(open_generator(folder, HERE, 1), LocalGenerator)
    other = LocalExecution(type="local", sampler="transformers")
    assert isinstance(open_generator(folder, other, 1), TransformersGenerator)


def test_no_model_no_file_no_key(params, scratch, monkeypatch):
    with pytest.raises(ParameterError, match="grammar is no model"):
        open_writer(params, "s")
    with pytest.raises(CheckpointError, match=r"synthesis\.writer\.model = none does not exist"):
        open_writer(written_by(params, local_writer(Path("none"))), "s")
    Path("model.gguf").touch()
    with pytest.raises(CheckpointError, match="vLLM reads HF folders"):
        open_writer(written_by(params, local_writer(Path("model.gguf"), "vllm")), "s")
    monkeypatch.delenv("WRITER_KEY", raising=False)
    with pytest.raises(ParameterError, match="WRITER_KEY"):
        open_writer(written_by(params, writer("https://api.example.com/v1")), "s")


def test_an_endpoint_is_asked_once_for_the_same(params, scratch):
    with serving(lambda *_: completion("yes")) as server:
        for _ in range(2):
            model = open_writer(written_by(params, writer(server.url)), "knowledge_graph")
            assert list(model.complete(requests(3))) == [Reply("yes", Finish.FINISHED)] * 3
    assert len(server.bodies) == 3
    assert model.counts() == {
        "asked": 0, "remembered": 3, "unanswered": 0, "input_tokens": 30, "output_tokens": 15,
        "cost": pytest.approx(60e-6),
    }  # fmt: skip
    assert sorted(path.name for path in Path(".work/knowledge_graph").glob("*.sqlite")) == [
        "replies.sqlite",
        "spending.sqlite",
    ]


def test_a_local_model_writes_and_is_remembered(params, scratch, monkeypatch):
    folder = write_folder(scratch / "model")
    model = open_writer(written_by(params, local_writer(folder)), "s")
    assert (model.context_tokens, model.max_output_tokens, model.count("cde")) == (200, 40, 2)
    replies = list(model.complete(requests(20)))
    assert all(isinstance(reply, Reply) for reply in replies)
    assert all(GrammarWriter.model_validate_json(reply.text) for reply in replies[1::2] if isinstance(reply, Reply))
    monkeypatch.setattr(models.Workers, "run", None)  # nothing is asked any more
    assert list(open_writer(written_by(params, local_writer(folder)), "s").complete(requests(20))) == replies


def test_a_model_is_loaded_once_a_process(params, scratch):
    local = local_writer(write_folder(scratch / "model"))
    assert models.Worker(local, 1)._chat is models.Worker(local, 1)._chat


def test_a_worker_replies_alike_after_a_journey(params, scratch):
    """What Ray does to workers and batches (tests/test_execution.py runs it): to bytes and back, elsewhere."""
    chat = models.WorkerChat(local_writer(write_folder(scratch / "model").relative_to(scratch)), HERE, 1)
    here = list(chat.complete(requests(40)))

    def journey(workers, batches):
        sent = [pickle.loads(pickle.dumps(batch)) for batch in batches]
        return map(pickle.loads(pickle.dumps(workers._make_worker))(), sent)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models.Workers, "run", journey)
        (scratch / "elsewhere").mkdir()
        patch.chdir(scratch / "elsewhere")
        models._open_chat.cache_clear()
        assert list(chat.complete(requests(40))) == here
