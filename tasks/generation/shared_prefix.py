"""The forward pass of a Qwen3 model in which samples that start alike share the computation of their start.

A batch is a forest: P prefixes, each computed once, and N suffixes that continue them, any number per prefix
and each of its own length. All token-wise work (projections, MLPs, norms) runs on the flat tokens, without
padding. Only attention pads: the suffix tokens of one prefix become M query rows, which see the prefix and,
through a mask, the earlier tokens of their own sample. Gradients flow into the prefix from every sample.

Axes: P prefixes, N samples, T flat tokens, L prefix slots, M new slots of a prefix, S all key slots (L, then
the new ones in order of arrival), H heads, d head size, D hidden size. Prefixes are padded on the right, so
causal attention needs no mask and position ids are the slot numbers.

Cost: attention of the suffixes grows with M², that is (samples per prefix × suffix length)²; the prefix must
be long beside the suffixes for sharing to pay, which it is for long-context questions.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers.models.qwen3.modeling_qwen3 import rotate_half

from tasks.errors import CheckpointError

SUPPORTED_MODELS = ("qwen3", "qwen3_moe")
HIDDEN = -1e30  # added to the score of a key that must not be seen; finite, so a row without keys stays finite
EVERYONE = -1  # owner of a prefix slot
NOBODY = -2  # owner of a padded slot
SCORES_PER_TOKEN = 256  # a masked score costs about 1/256 of a token's projections and MLP (measured, tiny size)
PADDING_QUERY = -3  # owner of a padded query: sees the prefix, and is dropped afterwards

Tokens = Sequence[int]
Model = Any  # a transformers Qwen3ForCausalLM or Qwen3MoeForCausalLM: their submodules are untyped
Layer = Any  # one of its decoder layers


@dataclass(frozen=True)
class SharedPrompts:
    """N prompts cut into P distinct prefixes and N rests: prompt n = prefixes[prefix_of[n]] + rests[n].

    No rest is empty: its last token is the one whose logits predict the first new token.
    """

    prefixes: tuple[tuple[int, ...], ...]
    prefix_of: tuple[int, ...]
    rests: tuple[tuple[int, ...], ...]

    def select(self, rows: Sequence[int]) -> "SharedPrompts":
        """Some of the prompts, with only the prefixes they need."""
        used = sorted({self.prefix_of[n] for n in rows})
        renumbered = {p: number for number, p in enumerate(used)}
        return SharedPrompts(
            tuple(self.prefixes[p] for p in used),
            tuple(renumbered[self.prefix_of[n]] for n in rows),
            tuple(self.rests[n] for n in rows),
        )

    def pack(self, new_tokens: Sequence[int], budget: int) -> list[list[int]]:
        """Split the prompts into batches of at most `budget` tokens (at least one prompt each), ascending
        rows.

        A prompt counts its rest and `new_tokens[n]`, a prefix counts once a batch. Neighbours in length share
        a batch.
        """
        order = sorted(
            range(len(self.rests)),
            key=lambda n: (len(self.prefixes[self.prefix_of[n]]), self.prefix_of[n], n),
        )
        batches: list[list[int]] = []
        tokens, prefix = 0, -1
        for n in order:
            own = len(self.rests[n]) + new_tokens[n]
            shared = 0 if self.prefix_of[n] == prefix else len(self.prefixes[self.prefix_of[n]])
            if not batches or tokens + own + shared > budget:
                batches.append([])
                tokens, shared = 0, len(self.prefixes[self.prefix_of[n]])
            batches[-1].append(n)
            tokens, prefix = tokens + own + shared, self.prefix_of[n]
        return [sorted(batch) for batch in batches]


def share_prompts(prompts: Sequence[Tokens]) -> SharedPrompts:
    """Find prefixes worth sharing: equal prompts always, merely alike ones when that leaves less to compute.

    Prompts are sorted, and neighbours merge while the work shrinks: tokens, and the scores of the rests, which
    see each other. (Prompts that share but their first words would make one long row of strangers.)
    """
    if empty := [n for n, prompt in enumerate(prompts) if not prompt]:
        raise ValueError(f"prompts {empty} are empty; a prompt needs at least one token")
    order = sorted(range(len(prompts)), key=lambda n: tuple(prompts[n]))
    clusters: list[_Cluster] = []
    for _, equal in groupby(order, key=lambda n: tuple(prompts[n])):
        cluster = _cluster(prompts, list(equal))
        if clusters:
            merged = _cluster(prompts, clusters[-1].members + cluster.members)
            if merged.cost < clusters[-1].cost + cluster.cost:
                clusters[-1] = merged
                continue
        clusters.append(cluster)
    prefix_of = {n: p for p, cluster in enumerate(clusters) for n in cluster.members}
    prefixes = tuple(tuple(prompts[cluster.members[0]][: cluster.shared]) for cluster in clusters)
    rests = tuple(tuple(prompt[clusters[prefix_of[n]].shared :]) for n, prompt in enumerate(prompts))
    return SharedPrompts(prefixes, tuple(prefix_of[n] for n in range(len(prompts))), rests)


@dataclass(frozen=True)
class _Cluster:
    members: list[int]  # in sorted order: the first and the last differ earliest
    shared: int
    cost: float  # in tokens


def _cluster(prompts: Sequence[Tokens], members: list[int]) -> _Cluster:
    first, last = prompts[members[0]], prompts[members[-1]]
    shortest = min(len(prompts[n]) for n in members)
    differing = (slot for slot in range(shortest - 1) if first[slot] != last[slot])
    shared = next(differing, shortest - 1)
    rests = sum(len(prompts[n]) - shared for n in members)
    return _Cluster(members, shared, shared + rests + rests * (shared + rests) / SCORES_PER_TOKEN)


@dataclass(frozen=True)
class Grid:
    """Where T flat tokens lie in R rows of C slots."""

    slots_T: Tensor
    rows: int
    columns: int

    @classmethod
    def from_rows(cls, row_of_tokens: Sequence[int], rows: int) -> "Grid":
        """Tokens fill their rows from the left, in flat order. A grid has at least one column."""
        filled = [0] * rows
        places = []
        for row in row_of_tokens:
            places.append((row, filled[row]))
            filled[row] += 1
        columns = max(filled, default=0) or 1
        return cls(torch.tensor([row * columns + c for row, c in places], dtype=torch.long), rows, columns)

    def pad(self, x_T: Tensor, fill: float = 0.0) -> Tensor:
        """(T, …) to (R, C, …)."""
        flat = x_T.new_full((self.rows * self.columns, *x_T.shape[1:]), fill)
        return flat.index_copy(0, self.slots_T, x_T).view(self.rows, self.columns, *x_T.shape[1:])

    def flatten(self, x_RC: Tensor) -> Tensor:
        """(R, C, …) to (T, …)."""
        return x_RC.reshape(self.rows * self.columns, *x_RC.shape[2:]).index_select(0, self.slots_T)


@dataclass(frozen=True)
class EncodedPrompts:
    """Keys and values of P prefixes, layer by layer, as (P, H, L, d); prefix p fills its first lengths[p]
    slots.
    """

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    lengths: tuple[int, ...]

    def owners_PL(self) -> Tensor:
        """Who may see a slot: everyone, or nobody where it is padding."""
        slots_L = torch.arange(self.keys[0].shape[2])
        real_PL = slots_L < torch.tensor(self.lengths)[:, None]
        return torch.where(real_PL, EVERYONE, NOBODY)


def check_supported(model: Model) -> None:
    """Refuse a model whose attention differs from what this file computes."""
    config = model.config
    if config.model_type not in SUPPORTED_MODELS or "sliding_attention" in (getattr(config, "layer_types", None) or ()):
        raise CheckpointError(
            f"model_type {config.model_type!r} is not supported by the local engine; use one of "
            f"{', '.join(SUPPORTED_MODELS)} with full attention"
        )


def encode_prompts(model: Model, prefixes: Sequence[Tokens]) -> EncodedPrompts:
    """Compute keys and values of prefixes of any lengths (empty ones too), with gradients where enabled.

    The last layer's queries, attention and MLP are skipped: nobody reads the hidden states of a prefix.
    """
    grid = Grid.from_rows([p for p, prefix in enumerate(prefixes) for _ in prefix], len(prefixes))
    tokens_T = torch.tensor([token for prefix in prefixes for token in prefix], dtype=torch.long)
    states = _embed(model, tokens_T, grid.slots_T % grid.columns)
    keys, values = [], []
    layers = model.model.layers
    for number, layer in enumerate(layers):
        normed_TD = layer.input_layernorm(states.hidden_TD)
        key_PHLd, value_PHLd = (_heads(grid.pad(x)) for x in _keys_values(layer, normed_TD, states))
        keys.append(key_PHLd)
        values.append(value_PHLd)
        if number + 1 < len(layers):
            query_PHLd = _heads(grid.pad(_queries(layer, normed_TD, states)))
            seen_PHLd = _attend(query_PHLd, key_PHLd, value_PHLd, None)
            states = _finish_layer(layer, states, grid.flatten(seen_PHLd.transpose(1, 2)))
    return EncodedPrompts(tuple(keys), tuple(values), tuple(len(prefix) for prefix in prefixes))


def forward_suffixes(
    model: Model, prompts: EncodedPrompts, prefix_of: Sequence[int], suffixes: Sequence[Tokens]
) -> Tensor:
    """Final hidden states of all suffix tokens as (T, D), sample by sample; for training, with gradients.

    Sample n continues prefix `prefix_of[n]`. Equal to the model's own forward on prefix + suffix.
    """
    samples = [n for n, suffix in enumerate(suffixes) for _ in suffix]
    grid = Grid.from_rows([prefix_of[n] for n in samples], len(prompts.lengths))
    positions_T = _positions(prompts, prefix_of, suffixes)
    owners_PM = grid.pad(torch.tensor(samples), NOBODY)
    positions_PM = grid.pad(positions_T)
    seen_PMM = (owners_PM[:, :, None] == owners_PM[:, None]) & (positions_PM[:, :, None] >= positions_PM[:, None])
    everyone_PML = (prompts.owners_PL() == EVERYONE)[:, None].expand(-1, grid.columns, -1)
    bias_P1MS = _bias(torch.cat([everyone_PML, seen_PMM], 2))
    states = _embed(model, torch.tensor([token for suffix in suffixes for token in suffix]), positions_T)
    for layer, prefix_keys, prefix_values in zip(model.model.layers, prompts.keys, prompts.values, strict=True):
        normed_TD = layer.input_layernorm(states.hidden_TD)
        key_PHMd, value_PHMd = (_heads(grid.pad(x)) for x in _keys_values(layer, normed_TD, states))
        query_PHMd = _heads(grid.pad(_queries(layer, normed_TD, states)))
        key_PHSd, value_PHSd = (
            torch.cat([prefix_keys, key_PHMd], 2),
            torch.cat([prefix_values, value_PHMd], 2),
        )
        seen_PHMd = _attend(query_PHMd, key_PHSd, value_PHSd, bias_P1MS)
        states = _finish_layer(layer, states, grid.flatten(seen_PHMd.transpose(1, 2)))
    normed: Tensor = model.model.norm(states.hidden_TD)
    return normed


class Decoder:
    """Feeds tokens to N samples step by step, keeping the keys and values of each; no gradients.

    Every step appends one slot per live sample to the row of its prefix. Dropped samples stop costing slots,
    and a prefix that nobody continues is dropped with its keys.
    """

    def __init__(self, model: Model, prompts: EncodedPrompts, prefix_of: Sequence[int], capacity: int) -> None:
        """`capacity` bounds the tokens that one sample may be fed over all steps."""
        self._model = model
        self._prefix_of = list(prefix_of)
        self._names = list(range(len(prefix_of)))
        self._next_N = torch.tensor([prompts.lengths[p] for p in prefix_of])
        per_prefix = max(prefix_of.count(p) for p in set(prefix_of)) if prefix_of else 0
        self._owners_PS = prompts.owners_PL()
        self._keys = [_with_room(keys, per_prefix * capacity) for keys in prompts.keys]
        self._values = [_with_room(values, per_prefix * capacity) for values in prompts.values]

    @torch.no_grad()
    def feed(self, tokens: Sequence[Tokens]) -> Tensor:
        """Append `tokens[n]` (not empty) to live sample n; the hidden state of its last token, as (N, D)."""
        counts = [len(new) for new in tokens]
        row_of_tokens = [p for p, count in zip(self._prefix_of, counts, strict=True) for _ in range(count)]
        grid = Grid.from_rows(row_of_tokens, self._owners_PS.shape[0])
        counts_N = torch.tensor(counts)
        ends_N = counts_N.cumsum(0)
        within_T = torch.arange(len(row_of_tokens)) - (ends_N - counts_N).repeat_interleave(counts_N)
        positions_T = self._next_N.repeat_interleave(counts_N) + within_T
        names_T = torch.tensor(self._names).repeat_interleave(counts_N)
        bias_P1MS = self._see(grid, names_T, positions_T)
        hidden_TD = self._run(grid, torch.tensor([t for new in tokens for t in new]), positions_T, bias_P1MS)
        self._next_N = self._next_N + counts_N
        last_ND: Tensor = self._model.model.norm(hidden_TD[ends_N - 1])
        return last_ND

    def keep(self, live: Sequence[int]) -> None:
        """Go on with these samples only (indices among the live ones, ascending)."""
        self._next_N = self._next_N[list(live)]
        self._names = [self._names[n] for n in live]
        rows = sorted({self._prefix_of[n] for n in live})
        renumbered = {row: number for number, row in enumerate(rows)}
        self._prefix_of = [renumbered[self._prefix_of[n]] for n in live]
        if len(rows) < self._owners_PS.shape[0]:
            self._owners_PS = self._owners_PS[rows]
            self._keys = [keys[rows] for keys in self._keys]
            self._values = [values[rows] for values in self._values]

    def _see(self, grid: Grid, names_T: Tensor, positions_T: Tensor) -> Tensor:
        """Append the new slots' owners; the bias of the new queries over all slots so far.

        Earlier slots of the own sample are always in the past; only the new ones need a look at positions.
        """
        names_PM = grid.pad(names_T, NOBODY)
        queries_PM = torch.where(names_PM == NOBODY, PADDING_QUERY, names_PM)
        positions_PM = grid.pad(positions_T)
        old = self._owners_PS.shape[1]
        self._owners_PS = torch.cat([self._owners_PS, names_PM], 1)
        owners_P1S = self._owners_PS[:, None]
        seen_PMS = (owners_P1S == EVERYONE) | (owners_P1S == queries_PM[:, :, None])
        seen_PMS[:, :, old:] &= positions_PM[:, :, None] >= positions_PM[:, None]
        return _bias(seen_PMS)

    def _run(self, grid: Grid, tokens_T: Tensor, positions_T: Tensor, bias_P1MS: Tensor) -> Tensor:
        states = _embed(self._model, tokens_T, positions_T)
        end = self._owners_PS.shape[1]
        start = end - grid.columns
        for layer, keys, values in zip(self._model.model.layers, self._keys, self._values, strict=True):
            normed_TD = layer.input_layernorm(states.hidden_TD)
            key_TC, value_TC = _keys_values(layer, normed_TD, states)
            keys[:, :, start:end] = _heads(grid.pad(key_TC))
            values[:, :, start:end] = _heads(grid.pad(value_TC))
            query_PHMd = _heads(grid.pad(_queries(layer, normed_TD, states)))
            seen_PHMd = _attend(query_PHMd, keys[:, :, :end], values[:, :, :end], bias_P1MS)
            states = _finish_layer(layer, states, grid.flatten(seen_PHMd.transpose(1, 2)))
        return states.hidden_TD


@dataclass(frozen=True)
class _States:
    hidden_TD: Tensor
    rotation: tuple[Tensor, Tensor]  # cosines and sines as (T, 1, d)


def _embed(model: Model, tokens_T: Tensor, positions_T: Tensor) -> _States:
    hidden_TD = model.model.embed_tokens(tokens_T)
    cosine_1Td, sine_1Td = model.model.rotary_emb(hidden_TD, positions_T[None])
    return _States(hidden_TD, (cosine_1Td[0, :, None], sine_1Td[0, :, None]))


def _queries(layer: Layer, normed_TD: Tensor, states: _States) -> Tensor:
    """(T, H, d), normed and rotated."""
    attention = layer.self_attn
    query_THd = attention.q_norm(attention.q_proj(normed_TD).unflatten(1, (-1, attention.head_dim)))
    return _rotate(query_THd, states)


def _keys_values(layer: Layer, normed_TD: Tensor, states: _States) -> tuple[Tensor, Tensor]:
    """(T, H, d) each; keys normed and rotated."""
    attention = layer.self_attn
    key_THd = attention.k_norm(attention.k_proj(normed_TD).unflatten(1, (-1, attention.head_dim)))
    return _rotate(key_THd, states), attention.v_proj(normed_TD).unflatten(1, (-1, attention.head_dim))


def _rotate(x_THd: Tensor, states: _States) -> Tensor:
    cosine_T1d, sine_T1d = states.rotation
    rotated: Tensor = x_THd * cosine_T1d + rotate_half(x_THd) * sine_T1d
    return rotated


def _heads(x_RCHd: Tensor) -> Tensor:
    return x_RCHd.transpose(1, 2)


def _attend(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
    grouped = query.shape[1] != key.shape[1]
    return F.scaled_dot_product_attention(query, key, value, attn_mask=bias, is_causal=bias is None, enable_gqa=grouped)


def _finish_layer(layer: Layer, states: _States, attended_THd: Tensor) -> _States:
    hidden_TD = states.hidden_TD + layer.self_attn.o_proj(attended_THd.flatten(1))
    update_1TD = layer.mlp(layer.post_attention_layernorm(hidden_TD)[None])
    return _States(hidden_TD + update_1TD[0], states.rotation)


def _bias(seen_PMS: Tensor) -> Tensor:
    return torch.zeros(seen_PMS.shape).masked_fill_(~seen_PMS, HIDDEN)[:, None]


def _positions(prompts: EncodedPrompts, prefix_of: Iterable[int], suffixes: Iterable[Tokens]) -> Tensor:
    starts = (prompts.lengths[p] for p in prefix_of)
    spans: Iterator[Tensor] = (
        torch.arange(start, start + len(suffix)) for start, suffix in zip(starts, suffixes, strict=True)
    )
    return torch.cat(list(spans))


def _with_room(x_PHLd: Tensor, slots: int) -> Tensor:
    prefixes, heads, length, size = x_PHLd.shape
    roomy = x_PHLd.new_zeros(prefixes, heads, length + slots, size)
    roomy[:, :, :length] = x_PHLd
    return roomy
