"""The models that the parameters name: who samples in this process, who writes, and who judges."""

from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tasks.artifacts import WORK, sha256_of
from tasks.errors import CheckpointError, ParameterError
from tasks.execution import Workers
from tasks.generation.base import Generator
from tasks.generation.chat import ChatModel, Reply, Request, Unanswered
from tasks.generation.journal import Remembered
from tasks.params import EndpointWriter, Execution, GrammarWriter, LocalWriter, Params
from tasks.tokenization import GGUF, ChatTokenizer

if TYPE_CHECKING:
    from tasks.generation.offline import OfflineChat

T = TypeVar("T")
BATCH = {"transformers": 16, "vllm": 512}  # requests sampled together: what keeps each busy, and what a kill costs


def open_generator(folder: Path, execution: Execution, threads: int) -> Generator:
    """The sampler of token ids that `execution.sampler` names, in this process, with the model of a HF folder.

    Raises:
        CheckpointError: the folder holds no model that this sampler runs.
    """
    import torch

    torch.set_num_threads(threads)
    if execution.sampler == "torch":
        from tasks.generation.local import LocalGenerator

        return LocalGenerator.load(folder)
    if execution.sampler == "transformers":
        from tasks.generation.huggingface import TransformersGenerator

        return TransformersGenerator.load(folder)
    from tasks.generation.vllm import VllmGenerator

    return VllmGenerator.load(folder)


def open_writer(params: Params, stage: str) -> Remembered:
    """The model that `synthesis.writer` names, with its memory in .work/<stage>/replies.sqlite.

    Raises:
        ParameterError: there is no such model, or no key for it.
        CheckpointError: nothing lies at its path.
    """
    writer, folder = params.synthesis.writer, WORK / stage
    if isinstance(writer, GrammarWriter):
        raise ParameterError("synthesis.writer.type = grammar is no model; name one to have documents read by it")
    model = open_chat(writer, "synthesis.writer", folder, params.execution, params.threads)
    return remembered(model, writer, folder)


def open_chat(
    settings: EndpointWriter | LocalWriter, section: str, folder: Path, execution: Execution, threads: int
) -> ChatModel:
    """A chat model without memory; what it costs is counted in `folder`. `section` is where the settings stand.

    Raises:
        ParameterError: there is no key for it.
        CheckpointError: nothing lies at its path.
    """
    if isinstance(settings, LocalWriter):
        _check_place(settings, section)
        return WorkerChat(settings, execution, threads)
    from tasks.generation.ledger import Ledger
    from tasks.generation.openai import EndpointChat

    prices = settings.input_price, settings.output_price, settings.budget
    return EndpointChat(settings, Ledger(folder / "spending.sqlite", *prices, section), section)


def remembered(model: ChatModel, settings: EndpointWriter | LocalWriter, folder: Path) -> Remembered:
    """The model with a memory of its replies in `folder`."""
    if isinstance(settings, EndpointWriter):
        identity = f"{settings.base_url} {settings.model}"
    else:
        identity = sha256_of(settings.model)
    return Remembered(model, folder / "replies.sqlite", f"{settings.type} {identity}")


class WorkerChat:
    """A model on this machine or, with `execution.type: ray`, in many processes that each hold the model.

    Batches are cut the same way in either, so the replies are the same.
    """

    def __init__(self, writer: LocalWriter, execution: Execution, threads: int) -> None:
        self._writer = writer.model_copy(update={"model": writer.model.absolute()})  # workers may start elsewhere
        self._workers = Workers(partial(Worker, self._writer, threads), execution)
        self.context_tokens = writer.context_tokens
        self.max_output_tokens = writer.max_output_tokens

    def count(self, text: str) -> int:
        """Exactly, without the chat template."""
        return _tokenizer(self._writer.model).count(text)

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply | Unanswered]:
        """Answer in order. Workers on Ray start with the first call and stay: each loads the model once."""
        for replies in self._workers.run(_batches(requests, BATCH[self._writer.type])):
            yield from replies


class Worker:
    """Answers batches with a model that its process loads once."""

    def __init__(self, writer: LocalWriter, threads: int) -> None:
        self._chat = _open_chat(writer, threads)

    def __call__(self, batch: list[Request]) -> list[Reply | Unanswered]:
        return self._chat.answer(batch)


@cache
def _open_chat(writer: LocalWriter, threads: int) -> "OfflineChat":
    import torch

    from tasks.generation.offline import OfflineChat, Sampler

    torch.set_num_threads(threads)
    tokenizer = _tokenizer(writer.model)
    sampler: Sampler
    if writer.type == "vllm":
        from tasks.generation.vllm import VllmGenerator

        sampler = VllmGenerator.load(writer.model, writer.context_tokens)
    else:
        from tasks.generation.huggingface import TransformersGenerator, load_causal_model

        sampler = TransformersGenerator(load_causal_model(writer.model), tokenizer)
    return OfflineChat(sampler, tokenizer, writer.context_tokens, writer.max_output_tokens, BATCH[writer.type])


@cache
def _tokenizer(path: Path) -> ChatTokenizer:
    return ChatTokenizer.load(path)


def _check_place(settings: LocalWriter, section: str) -> None:
    if not settings.model.exists():
        raise CheckpointError(f"{section}.model = {settings.model} does not exist; name a HF folder or a .gguf file")
    if settings.type == "vllm" and settings.model.suffix == GGUF:
        raise CheckpointError(f"{section}.model = {settings.model}: vLLM reads HF folders; use type: transformers")


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    coming = iter(items)
    while batch := list(islice(coming, size)):
        yield batch
