"""The reference engine: one process, fp32, prompts shared among their samples in rollouts and updates.

Axes: B turns (rows), T reply tokens, padded; b the rows of a micro-batch, with flat tokens where T stands
alone.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tasks.errors import DivergedError
from tasks.generation.local import LocalGenerator
from tasks.generation.shared_prefix import (
    Model,
    SharedPrompts,
    check_supported,
    encode_prompts,
    forward_suffixes,
    share_prompts,
)
from tasks.params import RLParams
from tasks.rl.advantage import Advantage
from tasks.rl.batch import TurnBatch, collate
from tasks.rl.engines.base import Update
from tasks.rl.entropy_control import Gate
from tasks.rl.episodes import Episode
from tasks.rl.objectives import policy_loss, score_tokens
from tasks.rl.schedule import BETAS, learning_rate
from tasks.rl.selection import Selection, select
from tasks.tokenization import ChatTokenizer

MICRO_BATCH_TOKENS = 16_384  # bounds the activations held for the backward pass
WEIGHTS_FILE = "weights.safetensors"
OPTIMISER_FILE = "optimiser.pt"


class LocalEngine:
    """AdamW without weight decay, constant learning rate after a linear warm-up, one update a batch."""

    def __init__(
        self,
        model: Model,
        tokenizer: ChatTokenizer,
        params: RLParams,
        advantage: Advantage,
        micro_batch_tokens: int = MICRO_BATCH_TOKENS,
    ) -> None:
        check_supported(model)
        self._model = model
        self._tokenizer = tokenizer
        self._params = params
        self._advantage = advantage
        self._micro_batch_tokens = micro_batch_tokens
        self._optimiser = torch.optim.AdamW(model.parameters(), lr=0.0, betas=BETAS, weight_decay=0.0)
        self._generator = LocalGenerator(model, tokenizer)

    @property
    def generator(self) -> LocalGenerator:
        return self._generator

    def update(self, episodes: Sequence[Episode], gate: Gate, step: int) -> Update:
        """Score, gate, clip, and step once.

        Raises:
            DivergedError: entropy or gradient is not finite; the weights stay as they were.
        """
        batch = collate(episodes, self._advantage, self._tokenizer.end_id)
        shared = share_prompts(batch.prompts)
        micro_batches = shared.pack(batch.lengths, self._micro_batch_tokens)
        whole = len(micro_batches) == 1  # then one forward pass serves entropy and gradient
        with torch.set_grad_enabled(whole):
            logprobs_BT, entropies_BT = self._score_all(batch, shared, micro_batches)
        selection = select(batch, entropies_BT, gate, self._params)
        norm = 0.0
        if not selection.empty:
            if whole:
                self._backward(batch, range(len(batch.prompts)), logprobs_BT, selection.kept_BT)
            else:
                self._recompute(batch, shared, selection)
            norm = self._step(step)
        return Update(
            entropy=selection.entropy,
            gate=selection.gate,
            kept_share=selection.kept_share,
            gradient_norm=norm,
            learning_rate=learning_rate(step, self._params),
            skipped=selection.empty,
        )

    def save_model(self, folder: Path) -> None:
        self._model.save_pretrained(folder)
        self._tokenizer.save(folder)

    def save_state(self, folder: Path) -> None:
        save_file(self._parameters(), folder / WEIGHTS_FILE)
        torch.save(self._optimiser.state_dict(), folder / OPTIMISER_FILE)

    @torch.no_grad()
    def load_state(self, folder: Path) -> None:
        saved = load_file(folder / WEIGHTS_FILE)
        for name, parameter in self._parameters().items():
            parameter.copy_(saved[name])
        self._optimiser.load_state_dict(torch.load(folder / OPTIMISER_FILE, weights_only=True))

    def _parameters(self) -> dict[str, Tensor]:
        return {name: parameter.detach() for name, parameter in self._model.named_parameters()}

    def _score_all(
        self, batch: TurnBatch, shared: SharedPrompts, micro_batches: Sequence[Sequence[int]]
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies of all replies, as (B, T), 0 on padding."""
        logprobs_BT, entropies_BT = torch.zeros(batch.mask_BT.shape), torch.zeros(batch.mask_BT.shape)
        for rows in micro_batches:
            logprobs_bT, entropies_BT[rows] = self._score(batch, shared, rows)
            logprobs_BT = logprobs_BT.index_copy(0, torch.tensor(rows), logprobs_bT)
        return logprobs_BT, entropies_BT

    def _score(self, batch: TurnBatch, shared: SharedPrompts, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
        prompts = shared.select(rows)
        tokens_bT, mask_bT = batch.tokens_BT[rows], batch.mask_BT[rows]
        replies = [tokens[mask].tolist() for tokens, mask in zip(tokens_bT, mask_bT, strict=True)]
        suffixes = [(*rest, *reply[:-1]) for rest, reply in zip(prompts.rests, replies, strict=True)]
        encoded = encode_prompts(self._model, prompts.prefixes)
        hidden_TD = forward_suffixes(self._model, encoded, prompts.prefix_of, suffixes)
        predicts_T = torch.tensor(
            [
                place >= len(suffix) - len(reply)
                for suffix, reply in zip(suffixes, replies, strict=True)
                for place in range(len(suffix))
            ]
        )
        logprobs_T, entropies_T = score_tokens(
            hidden_TD[predicts_T], self._model.lm_head, tokens_bT[mask_bT], self._params.sampling.temperature
        )
        empty_bT = torch.zeros(mask_bT.shape)
        return empty_bT.masked_scatter(mask_bT, logprobs_T), empty_bT.masked_scatter(mask_bT, entropies_T)

    def _recompute(self, batch: TurnBatch, shared: SharedPrompts, selection: Selection) -> None:
        """Second pass, with gradients, over the rows that have any."""
        rows = selection.teaching_B.nonzero()[:, 0].tolist()
        lengths = batch.lengths
        for chosen in shared.select(rows).pack([lengths[row] for row in rows], self._micro_batch_tokens):
            micro_batch = [rows[place] for place in chosen]
            logprobs_bT, _ = self._score(batch, shared, micro_batch)
            self._backward(batch, micro_batch, logprobs_bT, selection.kept_BT)

    def _backward(self, batch: TurnBatch, rows: Sequence[int], logprobs_bT: Tensor, kept_BT: Tensor) -> None:
        index = list(rows)
        batch_tokens = int(batch.mask_BT.sum())
        policy_loss(logprobs_bT, batch.advantages_B[index, None], kept_BT[index], batch_tokens).backward()

    def _step(self, step: int) -> float:
        norm = float(torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._params.max_gradient_norm))
        if not math.isfinite(norm):
            self._optimiser.zero_grad()
            raise DivergedError(
                f"the gradient norm at step {step} is {norm}; it must be finite: lower rl.learning_rate and run again"
            )
        for group in self._optimiser.param_groups:
            group["lr"] = learning_rate(step, self._params)
        self._optimiser.step()
        self._optimiser.zero_grad()
        return norm
