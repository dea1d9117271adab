"""One batch of episodes, and what verl's trainer and FSDP2 worker make of it: `python parity.py FOLDER`.

Processes of their own keep verl's patches and torch.distributed out of the tests'. Configuration, trainer, worker,
loss and optimiser are the real ones; doubles stand in for the worker group and the queue, which need Ray: the trainer
runs in each rank, all of them alike, and each trains its share of the rows.
Axes: B turns (rows), T reply tokens.
"""

import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tasks.params import NoClipping, Params, load_params
from tasks.records import Domain, Finish, Verdict
from tasks.rewards.rules import reward_of
from tasks.rl.entropy_control import Gate
from tasks.rl.episodes import Episode, Turn

STEPS = (1, 2)  # of three warm-up steps: the rate differs
RANKS = 2  # that the trainer divides rows among; a lone one takes both shares
END = 1
WORDS = range(5, 19)
PROFILE = Path(__file__).parents[2] / "infra/profiles/tiny.yaml"
SETTINGS = (
    "rl.engine=verl", "rl.batch_prompts=5", "rl.group_size=4", "rl.warmup_steps=3", "rl.learning_rate=0.001",
    "rl.max_gradient_norm=1000.0", "rl.entropy_control=null",
    "rl.clipping={type: quantile, level: token, quantile: 0.5}", "cluster.tokens_per_gpu=832",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """An RL stage with its settings, and what is broken on verl's side to see the comparison fail."""

    stage: str = "stage3"
    settings: tuple[str, ...] = ()
    fault: str = ""
    ranks: int = 1

    @property
    def params(self) -> Params:
        return load_params(PROFILE, (*SETTINGS, *self.settings))


SOUND = {
    "domain": Case(),
    "gated": Case(settings=("rl.entropy_control={low: 0.01, high: 0.02}", "rl.max_gradient_norm=0.01")),
    "memory": Case("memory", ("rl.clipping={type: quantile, level: sequence, quantile: 0.8}",)),
    "sharded": Case(ranks=RANKS),
}
BROKEN = {
    **{fault: Case(fault=fault) for fault in ("denominator", "clipping", "temperature")},
    "factor": Case(fault="factor", ranks=RANKS),
}
CASES = {**SOUND, **BROKEN}


@dataclass(frozen=True)
class Measured:
    """What an engine made of the batch: rows in its order, 0 where there is no token.

    `advantages_BT` are as the loss gets them, `gradients` as the optimiser does, `weights` those after its step: the
    same in all ranks. The rank's own are `rows`, their `tokens`, `micro_batches` and `held`, its share of the weights.
    """

    logprobs_BT: Tensor
    entropies_BT: Tensor
    advantages_BT: Tensor
    loss: float
    gradient_norm: float
    gradients: dict[str, Tensor]
    optimiser: dict[str, Any]
    weights: dict[str, Tensor]
    drift: float = 0.0
    rows: int = 0
    tokens: int = 0
    micro_batches: int = 1
    held: float = 1.0


# ── the batch ──

C, W, U = Verdict.CORRECT, Verdict.WRONG, Verdict.UNSCORED
GROUPS = (  # domain, verdicts, turns: several are a memory trajectory
    (Domain.MULTI_HOP, (C, W, W, C), (1, 1, 1, 1)),
    (Domain.MULTI_HOP, (W, C, W, U), (3, 2, 3, 1)),
    (Domain.READING_COMPREHENSION, (C, W, C, C), (1, 1, 1, 1)),
    (Domain.DIALOGUE_MEMORY, (C, W, W, W), (2, 2, 2, 3)),
    (Domain.MULTIPLE_CHOICE, (C, C, C), (1, 1, 1)),
    (Domain.CORPUS_NUMERIC, (C,), (2,)),
)


def fixed_batch() -> list[Episode]:
    """20 episodes of 31 turns: prompts of 3 to 150 tokens, replies of 1 to 12, some of them truncated."""
    draw = random.Random(7)
    return [
        Episode(group, domain, _turns(draw, prompt, turns), verdict, reward_of(verdict))
        for group, (domain, verdicts, lengths) in enumerate(GROUPS)
        for prompt in [_words(draw, 3, 120)]
        for verdict, turns in zip(verdicts, lengths, strict=True)
    ]


def _turns(draw: random.Random, prompt: tuple[int, ...], count: int) -> tuple[Turn, ...]:
    """A lone turn has its group's prompt; those of a trajectory go on from there."""
    prompts = [(*prompt, *_words(draw, 1, 30)) if count > 1 else prompt for _ in range(count)]
    return tuple(_turn(draw, prompt) for prompt in prompts)


def _turn(draw: random.Random, prompt: tuple[int, ...]) -> Turn:
    words = _words(draw, 0, 11)
    finished = not words or draw.random() < 0.7
    reply = (*words, END) if finished else words
    return Turn(prompt, reply, Finish.FINISHED if finished else Finish.TRUNCATED, (-1.0,) * len(reply))


def _words(draw: random.Random, least: int, most: int) -> tuple[int, ...]:
    return tuple(draw.choices(WORDS, k=draw.randint(least, most)))


# ── measuring ──


@dataclass
class AdamStep:
    """What an optimiser was given."""

    gradients: dict[str, Tensor]
    settings: dict[str, Any]


@contextmanager
def captured(module: torch.nn.Module) -> Iterator[AdamStep]:
    """The step that the module's optimiser takes inside."""
    step = AdamStep({}, {})

    def capture(optimiser: torch.optim.Optimizer, *_: Any) -> None:
        step.gradients = {name: _whole(parameter.grad) for name, parameter in module.named_parameters()}
        step.settings = {"kind": type(optimiser).__name__, **_settings(optimiser)}

    handle = register_optimizer_step_pre_hook(capture)
    try:
        yield step
    finally:
        handle.remove()


def _settings(optimiser: torch.optim.Optimizer) -> dict[str, Any]:
    """All numbers of its one group but how it is computed."""
    [group] = optimiser.param_groups
    names = ("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize", "decoupled_weight_decay")
    return {name: tuple(group[name]) if name == "betas" else group[name] for name in names}


def weights_of(module: torch.nn.Module) -> dict[str, Tensor]:
    """A copy."""
    return {name: _whole(parameter) for name, parameter in module.named_parameters()}


def _held(module: torch.nn.Module) -> float:
    """The share of FSDP's weights that is on this rank."""
    weights: list[Any] = list(module.parameters())
    return sum(weight.to_local().numel() for weight in weights) / sum(weight.numel() for weight in weights)


def _whole(tensor: Any) -> Tensor:
    """FSDP's parameters are shards."""
    whole: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return whole.detach().clone()


# ── verl's side ──


class Queue:
    """The queue's calls by key, on a dictionary."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self._tags: dict[str, dict[str, Any]] = {}

    def kv_batch_put(self, keys: Sequence[str], partition_id: str, fields: Any, tags: Any = None) -> Any:
        from transfer_queue import KVBatchMeta

        self._tags.update(zip(keys, tags or [self._tags[key] for key in keys], strict=True))
        for place, key in enumerate(keys):
            row = self.rows.setdefault(key, {})
            row.update({name: getattr(column[place], "data", column[place]) for name, column in _columns(fields)})
        return KVBatchMeta(list(keys), [self._tags[key] for key in keys], partition_id)

    def kv_batch_get(self, keys: Sequence[str], partition_id: str, select_fields: Sequence[str] = ()) -> Any:
        from verl.utils.tensordict_utils import list_of_dict_to_tensordict

        del partition_id
        return list_of_dict_to_tensordict(
            [{name: self.rows[key][name] for name in select_fields or self.rows[key]} for key in keys]
        )

    def kv_clear(self, keys: Sequence[str], partition_id: str) -> None:
        del partition_id
        for key in keys:
            del self.rows[key]

    def column(self, name: str) -> Tensor:
        """A field of the batch's rows, in their order, padded."""
        from tasks.rl.engines.verl.episodes import ordered

        keys = [key for key in self.rows if not key.startswith("pad")]
        return pad_sequence([self.rows[keys[place]][name] for place in ordered(keys)], batch_first=True)


def _columns(fields: Any) -> list[tuple[str, Any]]:
    return [(name, column.unbind() if isinstance(column, Tensor) else column) for name, column in fields.items()]


def _of_all_ranks(fields: Any) -> dict[str, list[Tensor]]:
    """The columns of each rank's rows, one rank's after the other's."""
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, dict(_columns(fields)))
    return {name: [row for part in parts for row in part[name]] for name in parts[0]}


class Workers:
    """verl's worker group: this process's worker here, the other ranks' in theirs."""

    def __init__(self, worker: Any, queue: Queue) -> None:
        self._dispatch_info = {"actor": list(range(RANKS))}
        self._worker = worker
        self._queue = queue

    def compute_log_prob(self, batch: Any) -> Any:
        scores = self._worker.compute_log_prob(self._read(batch)).select("log_probs", "entropy")
        return self._queue.kv_batch_put(batch.keys, batch.partition_id, _of_all_ranks(scores))

    def update_actor(self, batch: Any) -> Any:
        return self._worker.update_actor(self._read(batch))

    def _read(self, batch: Any) -> Any:
        """The rank's rows, divided as verl's dispatch does."""
        from verl.utils import tensordict_utils as tu

        own = batch.chunk(dist.get_world_size())[dist.get_rank()]
        data = self._queue.kv_batch_get(own.keys, own.partition_id)
        for name, value in own.extra_info.items():
            tu.assign_non_tensor_data(data, name, value)
        return data


def update_with_verl(case: Case, model: Path) -> list[Measured]:
    """What each of two updates on the batch did."""
    from verl.utils import hf_tokenizer

    from tasks.rl.engines.verl import trainer as module
    from tasks.rl.engines.verl.recipe import Recipe, tokenizer_of

    config = _configuration(case, model)
    worker = module.RecipeWorker(config.actor_rollout_ref, role="actor")
    worker.init_model()
    queue = Queue()
    trainer = object.__new__(module.RecipeTrainer)  # verl's constructor starts Ray
    vars(trainer).update(
        config=config,
        tokenizer=hf_tokenizer(str(model)),
        actor_rollout_wg=Workers(worker, queue),
        _recipe=Recipe.of(config),
        _chat=tokenizer_of(str(model)),
        _kept=SimpleNamespace(state=SimpleNamespace(gate=Gate())),
    )
    calls = {name: getattr(queue, name) for name in ("kv_batch_put", "kv_batch_get", "kv_clear")}
    with patch.multiple(module.tq, **calls), _fault(case.fault, module):
        return [_update(trainer, queue, worker.actor.engine, step) for step in STEPS]


def _configuration(case: Case, model: Path) -> Any:
    from omegaconf import OmegaConf

    from tasks.rl.engines.verl.config import RunIds, RunPaths, compose, config_name, overrides

    paths = RunPaths(model / "items.parquet", model, model / "resume")
    settings = overrides(case.stage, case.params, paths, RunIds("fingerprint", "run", "sqlite:///mlflow.db"))
    config = compose(config_name(case.params), settings)
    OmegaConf.resolve(config)
    if case.fault == "temperature":
        config.actor_rollout_ref.rollout.temperature = 1.0
    return config


def _fault(fault: str, module: Any) -> AbstractContextManager[Any]:
    """Each micro-batch divided by its own size, every token kept, or verl's averaging over ranks not made up for."""
    loss, select = module.policy_loss, module.select
    match fault:
        case "denominator":
            return patch.object(module, "policy_loss", lambda *given: loss(*given[:3], given[2].numel()))
        case "clipping":
            rl = CASES[fault].params.rl.model_copy(update={"clipping": NoClipping(type="none")})
            return patch.object(module, "select", lambda *given: select(*given[:3], rl))
        case "factor":
            return patch.object(module, "policy_loss", lambda *given: loss(*given) / RANKS)
        case _:
            return nullcontext()


def _update(trainer: Any, queue: Queue, engine: Any, step: int) -> Measured:
    """verl's step from a finished rollout on."""
    trainer.global_steps = step
    metrics: dict[str, Any] = {}
    batch = trainer._balance_batch(_put_rollout(queue, step), metrics)
    batch = trainer._compute_old_log_prob(batch, metrics)
    batch = trainer._compute_advantage(batch, metrics)
    scores = {
        "logprobs_BT": queue.column("old_log_probs"),
        "entropies_BT": queue.column("entropy"),
        "advantages_BT": queue.column("advantages"),
    }
    with captured(engine.module) as adam, patch.object(engine, "forward_step", wraps=engine.forward_step) as calls:
        trainer._update_actor(batch, metrics)
    queue.kv_clear(list(queue.rows), "train")
    micro_batches = [call.args[0] for call in calls.call_args_list]
    return Measured(
        **scores,
        loss=float(metrics["actor/pg_loss"]),
        gradient_norm=float(metrics["actor/grad_norm"]),
        gradients=adam.gradients,
        optimiser=adam.settings,
        weights=weights_of(engine.module),
        drift=float(metrics["actor/ppo_kl"]),
        rows=sum(len(micro_batch) for micro_batch in micro_batches),
        tokens=sum(int(micro_batch["loss_mask"].values().sum()) for micro_batch in micro_batches),
        micro_batches=len(micro_batches),
        held=_held(engine.module),
    )


def _put_rollout(queue: Queue, step: int) -> Any:
    """Rows as verl's agent-loop worker puts them, in another order than theirs."""
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict

    from tasks.rl.engines.verl.agent import _output

    rows = {
        f"{step}-{episode.group}_{session}_{place}": _fields(_output(turn, episode, [step], {}), episode)
        for session, episode in enumerate(fixed_batch())
        for place, turn in enumerate(episode.turns)
    }
    keys = random.Random(step).sample(list(rows), len(rows))
    tags = [{"status": "success", "seq_len": len(rows[key]["input_ids"])} for key in keys]
    return queue.kv_batch_put(keys, "train", list_of_dict_to_tensordict([rows[key] for key in keys]), tags)


def _fields(output: Any, episode: Episode) -> dict[str, Any]:
    fields = output.as_dict()
    tokens = torch.cat([fields["prompts"], fields["responses"]])
    added = {"input_ids": tokens, "position_ids": torch.arange(len(tokens)), "loss_mask": fields["response_mask"]}
    return {**fields, **added, "data_source": episode.domain.value, "multi_modal_inputs": {}}


def _measure(rank: int, ranks: int, folder: Path) -> None:
    """The cases of so many ranks, as one of them."""
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    dist.init_process_group("gloo", f"file://{folder}/rendezvous-{ranks}", rank=rank, world_size=ranks)
    for name, case in CASES.items():
        if case.ranks == ranks:
            updates = [asdict(update) for update in update_with_verl(case, folder)]
            torch.save(updates, folder / f"{name}-{rank}.pt")


def _main(folder: Path) -> None:
    from tasks.rl.engines.verl.launch import prepare_environment

    prepare_environment("cpu")
    torch.set_num_threads(1)
    import tasks.rl.engines.verl.trainer  # noqa: F401 (slow: once, here, and not in each rank)

    for ranks in (1, RANKS):
        torch.multiprocessing.start_processes(_measure, (ranks, folder), nprocs=ranks, start_method="fork")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
