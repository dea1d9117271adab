"""Samples replies from a local Qwen3 model, sharing the computation of equal and alike prompts.

Axes: N samples (rows), K new tokens, V vocabulary.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tasks.checkpoints import REMEDY, check_checkpoint
from tasks.errors import CheckpointError, DivergedError, InputError
from tasks.generation.base import Completion, Sampling
from tasks.generation.shared_prefix import (
    Decoder,
    Model,
    SharedPrompts,
    check_supported,
    encode_prompts,
    share_prompts,
)
from tasks.records import Finish
from tasks.tokenization import ChatTokenizer

TOKEN_BUDGET = 32_768  # tokens of a batch, new ones included: bounds the memory of keys and values
COMPACT_SHARE = 0.75  # drop finished rows when fewer than this share is live: a copy of keys against empty rows
Drawn = tuple[int, float]  # a token and its log-probability
LIKELIEST = 64  # sorted first; enough for a trained model's top-p set, all tokens are sorted where it is not


def load_model(folder: Path) -> Model:
    """Load a checkpoint in fp32 for the local engine.

    Raises:
        CheckpointError: the folder is not a whole checkpoint of a supported architecture.
    """
    check_checkpoint(folder)
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # files load in no time here, and a stage has its own bar
    transformers_logging.set_verbosity(logging.CRITICAL)  # what matters is in the loading report and in our errors
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{folder} does not load as a causal language model ({reason}); {REMEDY}") from error
    model, report = loaded
    _check_report(folder, report)
    check_supported(model)
    return model.eval()


def _check_report(folder: Path, report: Mapping[str, Iterable[object]]) -> None:
    """Every weight must come from the folder: transformers fills missing ones with random numbers."""
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if names := sorted(str(name) for name in report.get(kind, ())):
            raise CheckpointError(
                f"{folder}: {len(names)} {kind.replace('_', ' ')} between config.json and the weights "
                f"(first: {names[0]}); {REMEDY}"
            )


def sample_tokens(logits_NV: Tensor, temperature: float, top_p: float, uniforms_N: Tensor) -> Tensor:
    """Draw one token a row by inverting the distribution function at `uniforms_N` (in [0, 1)).

    Temperature 0 takes the likeliest token. Top-p keeps the fewest tokens, likeliest first, whose mass
    reaches top_p (at least one), and renormalises.

    Raises:
        DivergedError: a row has no finite maximum.
    """
    if not bool(logits_NV.amax(-1).isfinite().all()):
        raise DivergedError("the model's logits are not finite; its weights are broken: lower rl.learning_rate")
    if temperature == 0.0:
        return logits_NV.argmax(-1)
    probabilities_NV = (logits_NV / temperature).softmax(-1)
    likeliest = min(LIKELIEST, probabilities_NV.shape[1])
    sorted_NV, tokens_NV = probabilities_NV.topk(likeliest)
    if bool((sorted_NV.sum(-1) < top_p).any()):
        sorted_NV, tokens_NV = probabilities_NV.sort(descending=True)
    mass_before_NV = sorted_NV.cumsum(-1) - sorted_NV
    kept_NV = sorted_NV.masked_fill(mass_before_NV >= top_p, 0.0)
    kept_NV[:, 0] = sorted_NV[:, 0]
    heights_NV = kept_NV.cumsum(-1)
    targets_N1 = uniforms_N[:, None] * heights_NV[:, -1:]
    ranks_N1 = (heights_NV <= targets_N1).sum(-1, keepdim=True)
    last_kept_N1 = (kept_NV > 0).sum(-1, keepdim=True) - 1
    return tokens_NV.gather(1, torch.minimum(ranks_N1, last_kept_N1))[:, 0]


def token_logprobs(logits_NV: Tensor, tokens_N: Tensor, temperature: float) -> list[float]:
    """Log-probability of each row's token under log_softmax(logits / temperature); greedy counts as temperature 1."""
    scaled_NV = logits_NV / (temperature or 1.0)
    chosen_N = scaled_NV.gather(1, tokens_N[:, None])[:, 0]
    logprobs: list[float] = (chosen_N - scaled_NV.logsumexp(-1)).tolist()
    return logprobs


def _uniforms(prompts: int, sampling: Sampling, seed: int | Sequence[int]) -> Tensor:
    """Random numbers in [0, 1) of all samples, from one seed or a seed for each prompt."""
    if isinstance(seed, int):
        generator = torch.Generator().manual_seed(seed)
        return torch.rand(sampling.max_new_tokens, prompts * sampling.samples, generator=generator)
    own = [_uniforms(1, sampling, one) for one in seed]
    return torch.cat(own, dim=1) if own else torch.empty(sampling.max_new_tokens, 0)


class LocalGenerator:
    """The local implementation of `Generator`. Each sample has its own random numbers, drawn from the seed
    before anything is batched, so a result depends neither on padding nor on what shares its batch (up to
    float rounding).
    """

    def __init__(self, model: Model, tokenizer: ChatTokenizer, token_budget: int = TOKEN_BUDGET) -> None:
        check_supported(model)
        self._model = model
        self._tokenizer = tokenizer
        self._token_budget = token_budget

    @classmethod
    def load(cls, folder: Path) -> "LocalGenerator":
        """Load model and tokenizer of a HF folder."""
        return cls(load_model(folder), ChatTokenizer.load(folder))

    @torch.no_grad()
    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int | Sequence[int]
    ) -> list[list[Completion]]:
        """Return `sampling.samples` completions per prompt, in order; the same seed gives the same bytes.

        With a seed for each prompt its completions are those of a call of its own.

        Raises:
            InputError: a prompt is empty, or with its reply exceeds the model's positions.
        """
        self._check(prompts, sampling)
        count = len(prompts) * sampling.samples
        uniforms_KN = _uniforms(len(prompts), sampling, seed)
        shared = share_prompts([prompt for prompt in prompts for _ in range(sampling.samples)])
        replies: list[list[Drawn]] = [[]] * count
        for rows in shared.pack([sampling.max_new_tokens] * count, self._token_budget):
            for row, reply in zip(rows, self._decode(shared.select(rows), sampling, uniforms_KN[:, rows]), strict=True):
                replies[row] = reply
        flat = [self._completion(reply) for reply in replies]
        return [flat[n : n + sampling.samples] for n in range(0, count, sampling.samples)]

    def _check(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> None:
        limit = self._model.config.max_position_embeddings
        for number, prompt in enumerate(prompts):
            if not prompt:
                raise InputError(f"prompt {number} is empty; a prompt needs at least one token")
            if len(prompt) + sampling.max_new_tokens > limit:
                raise InputError(
                    f"prompt {number} has {len(prompt)} tokens and may get {sampling.max_new_tokens} more; "
                    f"the model has {limit} positions: shorten the prompt or the reply"
                )

    def _decode(self, shared: SharedPrompts, sampling: Sampling, uniforms_KN: Tensor) -> list[list[Drawn]]:
        capacity = max(len(rest) for rest in shared.rests) + sampling.max_new_tokens
        decoder = Decoder(self._model, encode_prompts(self._model, shared.prefixes), shared.prefix_of, capacity)
        replies: list[list[Drawn]] = [[] for _ in shared.rests]
        rows = list(range(len(shared.rests)))  # rows still in the decoder, finished ones among them
        feed: list[Sequence[int]] = list(shared.rests)
        for step in range(sampling.max_new_tokens):
            logits_NV = self._model.lm_head(decoder.feed(feed))
            drawn_N = sample_tokens(logits_NV, sampling.temperature, sampling.top_p, uniforms_KN[step, rows])
            drawn = [*zip(drawn_N.tolist(), token_logprobs(logits_NV, drawn_N, sampling.temperature), strict=True)]
            for row, token in zip(rows, drawn, strict=True):
                if not self._ended(replies[row]):
                    replies[row].append(token)
            live = [place for place, row in enumerate(rows) if not self._ended(replies[row])]
            if not live:
                break
            if len(live) < COMPACT_SHARE * len(rows):
                decoder.keep(live)
                rows, drawn = [rows[place] for place in live], [drawn[place] for place in live]
            feed = [[token] for token, _ in drawn]
        return replies

    def _ended(self, reply: Sequence[Drawn]) -> bool:
        return bool(reply) and reply[-1][0] == self._tokenizer.end_id

    def _completion(self, reply: Sequence[Drawn]) -> Completion:
        ids = tuple(token for token, _ in reply)
        finish = Finish.FINISHED if self._ended(reply) else Finish.TRUNCATED
        return Completion(ids, self._tokenizer.decode(ids), finish, tuple(logprob for _, logprob in reply))
