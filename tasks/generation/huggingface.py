"""Samples replies from any causal language model that transformers loads, on CPUs.

Axes: N rows of a batch, T prompt tokens with padding on the left, K new tokens, V vocabulary.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tasks.checkpoints import REMEDY, check_checkpoint
from tasks.errors import CheckpointError
from tasks.generation.base import Completion, Sampling
from tasks.generation.guidance import Guidance, Guide
from tasks.generation.local import sample_tokens, token_logprobs
from tasks.generation.offline import TokenRequest, check_fits, sample_groups
from tasks.generation.seeds import derived
from tasks.records import Finish
from tasks.tokenization import GGUF, ChatTokenizer, check_gguf

TOKEN_BUDGET = 16_384  # tokens of a batch with padding, new ones included: bounds the memory of keys and values

Model = Any  # a transformers ...ForCausalLM


def load_causal_model(path: Path) -> Model:
    """Load a HF folder or a GGUF file in fp32. Code that comes with a model is not run.

    Raises:
        CheckpointError: it is not whole, or no causal language model that transformers knows.
    """
    if path.suffix == GGUF:
        check_gguf(path)
    else:
        check_checkpoint(path)
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # a stage has its own
    transformers_logging.set_verbosity(logging.CRITICAL)  # what matters is in the loading report and in our errors
    place = {"gguf_file": path.name} if path.suffix == GGUF else {}
    folder = path.parent if place else path
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, output_loading_info=True, **place
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path} does not load as a causal language model ({reason}); {REMEDY}") from error
    model, report = loaded
    _check_report(path, report)
    return model.eval()


def _check_report(path: Path, report: Mapping[str, Any]) -> None:
    """transformers fills missing weights with random numbers. Surplus ones, of parts that we do not run, are fine."""
    for kind in ("missing_keys", "mismatched_keys"):
        if names := sorted(str(name) for name in report.get(kind, ())):
            raise CheckpointError(f"{path}: {len(names)} {kind.replace('_', ' ')} (first: {names[0]}); {REMEDY}")


class TransformersGenerator:
    """Implements `Generator` and `Sampler`. Each reply has its own random numbers, drawn from its request, so it
    depends neither on padding nor on what shares its batch (up to float rounding).

    Needs a cache of keys and values per row, as decoder-only transformers have; others run in vLLM.
    """

    def __init__(self, model: Model, tokenizer: ChatTokenizer, token_budget: int = TOKEN_BUDGET) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._token_budget = token_budget
        self._end_ids = _end_ids(model, tokenizer)
        self._limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)

    @classmethod
    def load(cls, path: Path) -> "TransformersGenerator":
        """Load model and tokenizer of a HF folder or a GGUF file."""
        return cls(load_causal_model(path), ChatTokenizer.load(path))

    @cached_property
    def _guidance(self) -> Guidance:
        return Guidance(self._tokenizer, self._end_ids)

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int | Sequence[int]
    ) -> list[list[Completion]]:
        """Return `sampling.samples` completions per prompt, in order; the same seed gives the same bytes.

        Raises:
            InputError: a prompt is empty, or with its reply exceeds the model's positions.
        """
        return sample_groups(self, prompts, sampling, seed)

    @torch.no_grad()
    def sample(self, requests: Sequence[TokenRequest]) -> list[Completion]:
        """One completion a request, in order; errors as in `generate`."""
        check_fits(requests, self._limit)
        completions: dict[int, Completion] = {}
        for rows in self._batches(requests):
            completions.update(zip(rows, self._decode([requests[row] for row in rows]), strict=True))
        return [completions[row] for row in range(len(requests))]

    def _batches(self, requests: Sequence[TokenRequest]) -> Iterator[list[int]]:
        """Rows of one sampling and of like lengths, longest first, within the budget (or a single one)."""

        def sampling_and_length(row: int) -> tuple[str, int]:
            return str(requests[row].sampling), -len(requests[row].prompt)

        batch: list[int] = []
        for row in sorted(range(len(requests)), key=sampling_and_length):
            if batch:
                first = requests[batch[0]]
                tokens = (len(batch) + 1) * (len(first.prompt) + first.sampling.max_new_tokens)
                if first.sampling != requests[row].sampling or tokens > self._token_budget:
                    yield batch
                    batch = []
            batch.append(row)
        if batch:
            yield batch

    def _decode(self, requests: Sequence[TokenRequest]) -> list[Completion]:
        sampling = requests[0].sampling
        uniforms_KN = torch.stack([_uniforms(request) for request in requests], dim=1)
        replies = [_Reply(self._guidance.guide(request.schema) if request.schema else None) for request in requests]
        rows = list(range(len(requests)))  # those that still write
        decoder = _Decoder(self._model, [request.prompt for request in requests], len(self._tokenizer))
        for step in range(sampling.max_new_tokens):
            logits_NV = decoder.logits_NV
            possible_NV = logits_NV.clone()
            for logits_V, row in zip(possible_NV, rows, strict=True):
                replies[row].strike_out(logits_V)
            drawn_N = sample_tokens(possible_NV, sampling.temperature, sampling.top_p, uniforms_KN[step, rows])
            logprobs_N = token_logprobs(logits_NV, drawn_N, sampling.temperature)
            for row, token, logprob in zip(rows, drawn_N.tolist(), logprobs_N, strict=True):
                replies[row].add(token, logprob, token in self._end_ids)
            live = [place for place, row in enumerate(rows) if not replies[row].finished]
            rows = [rows[place] for place in live]
            if not rows or step + 1 == sampling.max_new_tokens:
                break
            decoder.feed(drawn_N, live)
        return [reply.completion(self._tokenizer) for reply in replies]


class _Reply:
    """What was drawn for one request."""

    def __init__(self, guide: Guide | None) -> None:
        self._guide = guide
        self._ids: list[int] = []
        self._logprobs: list[float] = []
        self.finished = False

    def strike_out(self, logits_V: Tensor) -> None:
        if self._guide:
            self._guide.strike_out(logits_V)

    def add(self, token: int, logprob: float, ends: bool) -> None:
        self._ids.append(token)
        self._logprobs.append(logprob)
        self.finished = ends
        if self._guide and not ends:
            self._guide.follow(token)

    def completion(self, tokenizer: ChatTokenizer) -> Completion:
        text = tokenizer.decode(self._ids[:-1] if self.finished else self._ids)
        finish = Finish.FINISHED if self.finished else Finish.TRUNCATED
        return Completion(tuple(self._ids), text, finish, tuple(self._logprobs))


class _Decoder:
    """Runs a batch step by step; prompts are padded on the left, so all rows end in the same column.

    A prompt of several rows, as in a group of samples, is read once.
    """

    def __init__(self, model: Model, prompts: Sequence[Sequence[int]], vocabulary: int) -> None:
        places: dict[tuple[int, ...], int] = {}
        rows = [places.setdefault(tuple(prompt), len(places)) for prompt in prompts]
        longest = max(map(len, places))
        self._model = model
        self._vocabulary = vocabulary  # some models have rows of logits for which there are no tokens
        self._cache: Any = None
        self._mask_NT = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in places])
        self.logits_NV = self._run(torch.tensor([[0] * (longest - len(p)) + list(p) for p in places]))
        if len(places) < len(prompts):
            self._take(torch.tensor(rows))
            self.logits_NV = self.logits_NV[rows]

    def feed(self, drawn_N: Tensor, live: Sequence[int]) -> None:
        """Append a token to each row, and go on with those of `live` only."""
        if len(live) < len(drawn_N):
            self._take(torch.tensor(live))
            drawn_N = drawn_N[live]
        self._mask_NT = torch.cat([self._mask_NT, torch.ones(len(live), 1, dtype=torch.long)], 1)
        self.logits_NV = self._run(drawn_N[:, None])

    def _take(self, rows_N: Tensor) -> None:
        """Go on with these rows, some of them repeated or left out."""
        self._cache.batch_select_indices(rows_N)
        self._mask_NT = self._mask_NT[rows_N]

    def _run(self, tokens_NT: Tensor) -> Tensor:
        positions_NT = (self._mask_NT.cumsum(-1) - 1).clamp(min=0)[:, -tokens_NT.shape[1] :]
        output = self._model(
            input_ids=tokens_NT,
            attention_mask=self._mask_NT,
            position_ids=positions_NT,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self._cache = output.past_key_values
        logits_NV: Tensor = output.logits[:, -1, : self._vocabulary].float()
        return logits_NV


def _end_ids(model: Model, tokenizer: ChatTokenizer) -> tuple[int, ...]:
    """A model may end its turn with other tokens than the tokenizer's own; its generation settings name them."""
    named = model.generation_config.eos_token_id
    ids = named if isinstance(named, list) else [named]
    return tuple(sorted({tokenizer.end_id, *(token for token in ids if token is not None)}))


def _uniforms(request: TokenRequest) -> Tensor:
    """Random numbers of one reply, by its seed and prompt."""
    seed = derived(request.seed, *request.prompt)
    return torch.rand(request.sampling.max_new_tokens, generator=torch.Generator().manual_seed(seed))
