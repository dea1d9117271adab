"""Training and sampling without a GPU: verl's FSDP2 engine, and the local generator as rollout server "local".

Requests are answered one by one, each with its own seed, so that what is sampled depends on no order of arrival.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ray
import torch
from torch import Tensor
from verl.workers.engine import EngineRegistry, FSDPEngineWithLMHead
from verl.workers.rollout import base
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry, TokenOutput

from tasks.errors import CheckpointError
from tasks.generation.base import Sampling
from tasks.generation.local import LocalGenerator, load_model
from tasks.tokenization import ChatTokenizer

NAME = "local"


class LocalServer:
    """A Ray actor with a copy of the policy. Control calls that only a GPU needs do nothing."""

    def __init__(self, folder: str) -> None:
        torch.set_num_threads(1)
        self._model = load_model(Path(folder))
        self._generator = LocalGenerator(self._model, ChatTokenizer.load(Path(folder)))
        self._free = asyncio.Lock()
        self._version = 0

    async def generate(
        self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **_: Any
    ) -> TokenOutput:
        """Answer one request with the weights of now."""
        del request_id
        sampling = Sampling(
            sampling_params["temperature"], sampling_params["top_p"], sampling_params["max_tokens"], samples=1
        )
        async with self._free:
            replies = await asyncio.to_thread(self._generator.generate, [prompt_ids], sampling, sampling_params["seed"])
            reply, version = replies[0][0], self._version
        return TokenOutput(
            token_ids=list(reply.token_ids),
            log_probs=list(reply.logprobs),
            stop_reason="completed",
            num_preempted=0,
            extra_fields={"global_steps": version},
        )

    async def load_weights(self, named: Sequence[tuple[str, Tensor]], version: int | None) -> None:
        """Take the trainer's weights, all of them or none.

        Raises:
            CheckpointError: names or shapes are not the model's.
        """
        async with self._free:
            _copy_weights(self._model, dict(named))
            self._version = version or 0

    async def wake_up(self, tags: list[str] | None = None) -> None: ...

    async def sleep(self) -> None: ...

    async def clear_kv_cache(self) -> None: ...

    async def release_kv_cache(self) -> None: ...

    async def resume_kv_cache(self) -> None: ...

    async def start_profile(self, **_: Any) -> None: ...

    async def stop_profile(self) -> None: ...

    async def abort_all_requests(self, reject_request: bool = False) -> None: ...

    async def resume_generation(self) -> None: ...


@torch.no_grad()
def _copy_weights(model: torch.nn.Module, named: dict[str, Tensor]) -> None:
    own = dict(model.named_parameters())  # tied weights once
    missing = [name for name in own if name not in named or named[name].shape != own[name].shape]
    if missing:
        raise CheckpointError(
            f"the trainer sent no fitting weights for {len(missing)} of {len(own)} parameters (first: {missing[0]}); "
            "the rollout would sample from another policy: check that both load the same model folder"
        )
    for name, parameter in own.items():
        parameter.copy_(named[name])


class LocalReplica(RolloutReplica):
    """One server for all workers."""

    async def launch_servers(self) -> None:
        actor = ray.remote(LocalServer).options(
            name=_actor_name(self.replica_rank), num_cpus=0, max_concurrency=self.max_concurrency
        )
        server = actor.remote(self.model_config.path)
        self.servers, self._server_handle = [server], server
        self._server_address = _actor_name(self.replica_rank)


class LocalRollout(BaseRollout):
    """The trainer's end: sends its weights to the server after every update."""

    def __init__(self, config: Any, model_config: Any, device_mesh: Any, **_: Any) -> None:
        super().__init__(config, model_config, device_mesh)
        self._rank = int(os.environ["RANK"])

    async def resume(self, tags: list[str]) -> None: ...

    async def release(self) -> None: ...

    async def update_weights(
        self,
        weights: Iterator[tuple[str, Tensor]],
        wire_format: str = "named_tensors",
        global_steps: int | None = None,
        **_: Any,
    ) -> None:
        if wire_format != "named_tensors":
            raise CheckpointError(f"weights came as {wire_format}; the local rollout takes named_tensors alone")
        named = [(name, weight.detach().to("cpu", torch.float32).clone()) for name, weight in weights]
        if self._rank == 0:
            await ray.get_actor(_actor_name(0)).load_weights.remote(named, global_steps)


def _actor_name(rank: int) -> str:
    return f"local_rollout_{rank}"


EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cpu")(FSDPEngineWithLMHead)
RolloutReplicaRegistry.register(NAME, lambda: LocalReplica)
base._ROLLOUT_REGISTRY[NAME, "async"] = f"{__name__}.LocalRollout"  # verl 0.9.1 has no public call for it
