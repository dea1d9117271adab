"""verl's synchronous trainer with the recipe's decisions: who is drawn, what it is worth, what of it trains.

verl samples, scores log-probabilities and entropies, and steps; everything in between is the code that the local
engine runs. Axes: B turns (rows), T reply tokens, padded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray
import torch
import transfer_queue as tq
from tensordict import TensorDict
from torch import Tensor
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.core_algos import register_policy_loss
from verl.trainer.ppo.v1 import PPOTrainerSync, register_trainer
from verl.utils import tensordict_utils as tu
from verl.utils.dataset.rl_dataset import collate_fn
from verl.utils.metric import reduce_metrics
from verl.workers.engine_workers import ActorRolloutRefWorker, TrainingWorker

from tasks.errors import DivergedError, PipelineError
from tasks.rl.batch import TurnBatch, collate
from tasks.rl.engines.base import Update
from tasks.rl.engines.verl.dataset import ItemDataset
from tasks.rl.engines.verl.episodes import CAUSE, Row, episodes_of, ordered
from tasks.rl.engines.verl.metrics import translate
from tasks.rl.engines.verl.recipe import Recipe, tokenizer_of
from tasks.rl.engines.verl.records import write_rollouts
from tasks.rl.engines.verl.state import KeptState
from tasks.rl.episodes import Episode
from tasks.rl.judge_counts import StepCounts
from tasks.rl.loop import alarm, make_sampler, question_key
from tasks.rl.objectives import policy_loss
from tasks.rl.schedule import learning_rate
from tasks.rl.selection import Selection, select
from tasks.rl.state import StepMetrics, measure, with_outcomes
from tasks.tracking import attach

POLL_SECONDS = 0.2  # between looks for finished rollouts; verl's 2 s are half a step of a small model


@register_policy_loss("recipe")
def recipe_loss(
    old_log_prob: Tensor,
    log_prob: Tensor,
    advantages: Tensor,
    response_mask: Tensor,
    loss_agg_mode: str = "token-mean",
    config: Any = None,
    rollout_is_weights: Tensor | None = None,
) -> tuple[Tensor, dict[str, float]]:
    """The recipe's objective as verl calls it. A token whose gradient is clipped comes with advantage 0.

    verl averages gradients over the data-parallel groups, hence the factor; on-policy `ppo_kl` is exactly 0.
    """
    del loss_agg_mode, rollout_is_weights
    everywhere = config.global_batch_info
    loss = policy_loss(log_prob, advantages, response_mask & (advantages != 0), everywhere["batch_num_tokens"])
    drift = ((old_log_prob - log_prob.detach()) * response_mask).sum() / response_mask.sum().clamp(min=1)
    return loss * everywhere["dp_size"], {"actor/ppo_kl": float(drift)}


class RecipeActor(TrainingWorker):
    """Takes the learning rate with the batch: a schedule that counts updates would not count skipped steps."""

    def train_mini_batch(self, data: TensorDict) -> TensorDict:
        rate = tu.pop(data, key="learning_rate")
        for group in self.engine.optimizer.param_groups:
            group["lr"] = rate
        return super().train_mini_batch(data)


class RecipeWorker(ActorRolloutRefWorker):
    """verl's worker of trainer and rollout, around our actor."""

    actor_worker_cls = RecipeActor


@dataclass(frozen=True)
class _Round:
    """What one step has gathered before its update."""

    rows: tuple[Row, ...]
    episodes: tuple[Episode, ...]
    batch: TurnBatch
    selection: Selection


@register_trainer("recipe")
class RecipeTrainer(PPOTrainerSync):
    """One update a batch, purely on-policy. Its memory between steps is the local engine's `StageState`."""

    def __init__(self, config: Any) -> None:
        self._recipe = Recipe.of(config)
        self._tracker = attach(self._recipe.tracking_uri, self._recipe.run_id)  # fails here, before anything starts
        self._chat = tokenizer_of(config.actor_rollout_ref.model.path)
        self._judge_counts = StepCounts()
        super().__init__(config)

    def _build_replay_buffer(self) -> Any:
        self.trainer_mode = "sync"  # the base compares the mode's name
        buffer = super()._build_replay_buffer()
        buffer.poll_interval = POLL_SECONDS
        return buffer

    def _init_resource_pool_mgr(self) -> None:
        super()._init_resource_pool_mgr()
        for role in self.role_worker_mapping:
            self.role_worker_mapping[role] = ray.remote(RecipeWorker)

    def _init_dataloader(self) -> None:
        """Our sampler draws, verl's data loader is not used; `train_dataloader` is what verl saves and loads."""
        rl = self._recipe.params.rl
        self.train_dataset = ItemDataset(self.config.data.train_files, self.tokenizer, self.config.data)
        self._sampler = make_sampler(self.train_dataset.items, rl, self._recipe.params.seed)
        self.train_dataloader = self._kept = KeptState(self._recipe, self._sampler)
        self.total_training_steps = self.steps_per_epoch = rl.limits(self._recipe.name).steps

    # ── drawing ──

    def _next_train_batch(self, num_prompts: int | None = None) -> TensorDict:
        del num_prompts
        self._keys = self._sampler.next_batch()
        rows = [
            {**self.train_dataset.row(key), "place": place, "uid": f"{self.global_steps}-{place}"}
            for place, key in enumerate(self._keys)
        ]
        batch = tu.get_tensordict(collate_fn(rows))
        tu.assign_non_tensor_data(batch, "global_steps", self.global_steps)
        return batch

    def _balance_batch(self, batch: KVBatchMeta, metrics: dict[str, Any], **options: Any) -> KVBatchMeta:
        """Rows arrive in the order of their completion; sorted first, the sums of gradients repeat exactly."""
        batch.reorder(ordered(batch.keys))
        return super()._balance_batch(batch, metrics, **options)

    def _get_required_batch_multiple(self, dp_size: int) -> int:
        return dp_size  # one update takes every row

    # ── deciding ──

    def _compute_advantage(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        """Advantages of whole episodes, entropy, gate and clipping: the local engine's functions on verl's rows."""
        del metrics
        rl = self._recipe.params.rl
        real = [place for place, tag in enumerate(batch.tags) if not tag.get("is_padding", False)]
        rows = _read_rows(batch, real)
        episodes = episodes_of(rows, self._recipe.params.rl)
        turns = collate(episodes, rl.advantage_of(self._recipe.name), self._chat.end_id)
        entropies_BT = torch.nn.utils.rnn.pad_sequence([row.entropies for row in rows], batch_first=True)
        selection = select(turns, entropies_BT, self._kept.state.gate, rl)
        self._round = _Round(rows, episodes, turns, selection)
        return _write_advantages(batch, self._round)

    def _update_actor(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        """One update on all rows. Those that teach nothing go along: on other micro-batches the log-probabilities
        would round differently, and `ppo_kl` could not be checked against exactly 0.
        """
        if self._round.selection.empty:
            return batch
        batch.extra_info.update(self._update_options(len(batch)))
        output = self.actor_rollout_wg.update_actor(batch)
        metrics.update(reduce_metrics(_prefixed(output["metrics"])))
        if not np.isfinite(metrics["actor/grad_norm"]):
            raise DivergedError(
                f"the gradient norm at step {self.global_steps} is {metrics['actor/grad_norm']}; it must be finite: "
                "lower rl.learning_rate and run again"
            )
        return batch

    def _update_options(self, rows: int) -> dict[str, Any]:
        actor = self.config.actor_rollout_ref.actor
        return {
            "calculate_entropy": False,
            "distillation_use_topk": False,
            "distillation_only": False,
            "global_batch_size": rows,
            "num_mini_batch": 1,
            "epochs": 1,
            "seed": actor.data_loader_seed,
            "dataloader_kwargs": {"shuffle": False},
            "temperature": self._recipe.params.rl.sampling.temperature,
            "learning_rate": learning_rate(self.global_steps, self._recipe.params.rl),
        }

    # ── remembering ──

    def step(self, metrics: dict[str, Any], timing_raw: dict[str, float]) -> KVBatchMeta:
        """One step of verl's, then of our state: reported and on disk before verl saves it with its weights."""
        try:
            batch = super().step(metrics, timing_raw)
        except RuntimeError as error:
            if "no materializable trajectories" in str(error):  # verl's word for: every rollout failed
                raise PipelineError(f"all episodes of step {self.global_steps} failed; {CAUSE}") from error
            raise
        done, rl = self._round, self._recipe.params.rl
        update = Update(
            entropy=done.selection.entropy,
            gate=done.selection.gate,
            kept_share=done.selection.kept_share,
            gradient_norm=float(metrics.get("actor/grad_norm", 0.0)),
            learning_rate=learning_rate(self.global_steps, rl),
            skipped=done.selection.empty,
        )
        self._kept.advance(
            step=self.global_steps,
            gate=update.gate,
            metrics=measure(self.global_steps, done.episodes, update),
            outcomes=with_outcomes(self._kept.state.outcomes, self._keys, done.episodes),
        )
        self._report(self._kept.state.metrics[-1])
        self._write_rollouts()
        return batch

    def _report(self, step: StepMetrics) -> None:
        alarm(step, self._recipe.params.rl.unscored_alarm_share)
        judges = self._judge_counts.step(row.judge for row in self._round.rows)
        self._tracker.log_metrics({**step.flat(), **judges}, step.step)
        print(f"rl {self._recipe.name} {step.step}/{self.total_training_steps} {step.summary()}", flush=True)

    def _write_rollouts(self) -> None:
        items = {question_key(item): item for item in self.train_dataset.items}
        questions = [items[key].question for key in self._keys]
        folder = self.config.trainer.rollout_data_dir
        write_rollouts(folder, self.global_steps, self._round.episodes, questions, self._chat)

    def _load_checkpoint(self) -> None:
        """A resume point from S3 may come to an MLflow run that has not seen its steps yet."""
        super()._load_checkpoint()
        if self._kept.run_id != self._recipe.run_id:
            for step in self._kept.state.metrics:
                self._tracker.log_metrics(step.flat(), step.step)
            self._kept.run_id = self._recipe.run_id

    def _compute_metrics(
        self, batch: KVBatchMeta, metrics: dict[str, Any], timing_raw: dict[str, float], **where: int
    ) -> None:
        """Report verl's own figures beside ours."""
        super()._compute_metrics(batch, metrics, timing_raw, **where)
        self._tracker.log_metrics(translate(metrics), self._kept.state.step)

    def _log_rollout_data(self, batch: KVBatchMeta, timing_raw: dict[str, float], rollout_data_dir: str) -> None:
        """Ours are written before the step is saved."""


def _read_rows(batch: KVBatchMeta, places: Sequence[int]) -> tuple[Row, ...]:
    keys = [batch.keys[place] for place in places]
    fields = ["prompts", "responses", "entropy", "extra_fields", "data_source"]
    data = tq.kv_batch_get(keys=keys, partition_id=batch.partition_id, select_fields=fields)
    rows = [
        Row.of(key, prompt, reply, entropies, extra, domain)
        for key, prompt, reply, entropies, extra, domain in zip(
            keys,
            data["prompts"].unbind(),
            data["responses"].unbind(),
            data["entropy"].unbind(),
            _plain(data["extra_fields"]),
            _plain(data["data_source"]),
            strict=True,
        )
    ]
    return tuple(rows[place] for place in ordered(keys))


def _plain(field: Any) -> list[Any]:
    """The values of a field without tensors: the queue gives them bare or wrapped, by what shares the batch."""
    return [getattr(value, "data", value) for value in field]


def _write_advantages(batch: KVBatchMeta, done: _Round) -> KVBatchMeta:
    """Into verl's queue: each row's advantage where a token keeps its gradient, else 0; 0 for rows of padding."""
    advantages_BT = done.batch.advantages_B[:, None] * done.selection.kept_BT
    by_key = {
        row.key: advantages_T[: len(row.reply)] for row, advantages_T in zip(done.rows, advantages_BT, strict=True)
    }
    nested = torch.nested.as_nested_tensor([by_key.get(key, torch.zeros(1)) for key in batch.keys], layout=torch.jagged)
    fields = TensorDict({"advantages": nested, "returns": nested.clone()}, batch_size=len(batch))
    return tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=fields)


def _prefixed(metrics: dict[str, Any]) -> dict[str, Any]:
    return {name if name.startswith("actor/") else f"actor/{name}": value for name, value in metrics.items()}
