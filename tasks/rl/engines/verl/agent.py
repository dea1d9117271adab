"""verl's agent loops: our rollouts, sampled on verl's servers. One call is one episode; each turn a training row."""

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import numpy as np
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register

from tasks.errors import PipelineError
from tasks.generation.base import Completion, Generator, Sampling
from tasks.memory.rollout import roll_out as roll_out_memory
from tasks.records import Finish, Item
from tasks.rewards.judge import Judge
from tasks.rl.engines.verl.recipe import Recipe, judge_of, tokenizer_of
from tasks.rl.episodes import Episode, Turn
from tasks.rl.loop import step_seed
from tasks.rl.rollout import roll_out
from tasks.tokenization import ChatTokenizer

PROCESS = f"{socket.gethostname()} {os.getpid()}"  # tells the judges of a cluster apart
MOST_EPISODES = 1024  # that one worker runs at once; each waits in a thread of its own
_threads = ThreadPoolExecutor(MOST_EPISODES, thread_name_prefix="episode")


class ServerGenerator:
    """`Generator` over verl's servers, for a thread beside the event loop. Remembers which policies answered."""

    def __init__(self, servers: Any, loop: asyncio.AbstractEventLoop, tokenizer: ChatTokenizer) -> None:
        self._servers = servers
        self._loop = loop
        self._tokenizer = tokenizer
        self.versions: list[int] = []

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int | Sequence[int]
    ) -> list[list[Completion]]:
        """Sample each reply with a seed of its own.

        Raises:
            PipelineError: a server gave up on a request.
        """
        requests = [
            [self._request(prompt, sampling, number) for number in numbers]
            for prompt, numbers in zip(prompts, _numbers(seed, len(prompts), sampling.samples), strict=True)
        ]
        return [[self._completion(request.result()) for request in group] for group in requests]

    def _request(self, prompt: Sequence[int], sampling: Sampling, seed: int) -> Any:
        call = self._servers.generate(
            request_id=uuid4().hex,
            prompt_ids=list(prompt),
            sampling_params={
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "max_tokens": sampling.max_new_tokens,
                "logprobs": True,
                "seed": seed,
            },
        )
        return asyncio.run_coroutine_threadsafe(call, self._loop)

    def _completion(self, output: Any) -> Completion:
        if output.stop_reason == "aborted":
            raise PipelineError("a rollout server aborted a request; on-policy training needs whole replies")
        self.versions.append(int(output.extra_fields.get("global_steps") or 0))
        ids = tuple(output.token_ids)
        finished = bool(ids) and ids[-1] == self._tokenizer.end_id
        finish = Finish.FINISHED if finished else Finish.TRUNCATED
        return Completion(ids, self._tokenizer.decode(ids), finish, tuple(output.log_probs or ()))


class _EpisodeLoop(AgentLoopBase):
    """Runs one episode of the row's item in a thread and hands its turns to verl."""

    def __init__(self, trainer_config: Any, server_manager: Any, **_: Any) -> None:
        """Not verl's: that one builds a prompt tokenizer of its own, which refuses vocabularies that are not Qwen's."""
        self.config = trainer_config.config
        self.server_manager = server_manager

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        """verl's entry. Sampling comes from our parameters, seeds from the step: no order of arrival matters."""
        del sampling_params
        recipe = Recipe.of(self.config)
        item = Item.model_validate_json(row["item"])
        loop = asyncio.get_running_loop()
        generator = ServerGenerator(self.server_manager, loop, tokenizer_of(self.config.actor_rollout_ref.model.path))
        seed = episode_seed(recipe, int(row["global_steps"]), int(row["place"]), int(row["session_id"]))
        opened = judge_of(self.config.recipe.params, self.config.trainer.default_local_dir)
        episode, counts = await loop.run_in_executor(_threads, self._judged, recipe, generator, item, seed, opened)
        return [_output(turn, episode, generator.versions, counts) for turn in episode.turns]

    def _judged(
        self, recipe: Recipe, generator: Generator, item: Item, seed: int, opened: "Future[Judge | None]"
    ) -> tuple[Episode, Mapping[str, float]]:
        """The episode, and what this process's judge has counted so far."""
        judge = opened.result()
        episode = self._roll_out(recipe, generator, item, seed, judge)
        return episode, judge.counts() if judge else {}

    def _roll_out(self, recipe: Recipe, generator: Generator, item: Item, seed: int, judge: Judge | None) -> Episode:
        raise NotImplementedError

    def _sampling(self, recipe: Recipe) -> Sampling:
        rl = recipe.params.rl
        return Sampling(rl.sampling.temperature, rl.sampling.top_p, rl.limits(recipe.name).max_output_tokens)

    def _chat(self) -> ChatTokenizer:
        return tokenizer_of(self.config.actor_rollout_ref.model.path)


@register("full_context")
class FullContextLoop(_EpisodeLoop):
    """One reply to a question on its whole context."""

    def _roll_out(self, recipe: Recipe, generator: Generator, item: Item, seed: int, judge: Judge | None) -> Episode:
        limit = recipe.params.rl.limits(recipe.name).max_input_tokens
        return roll_out(generator, self._chat(), [item], limit, self._sampling(recipe), seed, judge)[0]


@register("memory_agent")
class MemoryAgentLoop(_EpisodeLoop):
    """The memory agent reads the documents chunk by chunk: K updates and an answer."""

    def _roll_out(self, recipe: Recipe, generator: Generator, item: Item, seed: int, judge: Judge | None) -> Episode:
        memory, sampling = recipe.params.memory, self._sampling(recipe)
        return roll_out_memory(generator, self._chat(), [item], 1, memory, sampling, seed, judge)[0]


def _numbers(seed: int | Sequence[int], prompts: int, samples: int) -> list[list[int]]:
    """A number for each sample of each prompt."""
    if not isinstance(seed, int):
        return [_numbers(own, 1, samples)[0] for own in seed]
    numbers = np.random.SeedSequence(seed).generate_state(prompts * samples).tolist()
    return [numbers[start : start + samples] for start in range(0, prompts * samples, samples)]


def episode_seed(recipe: Recipe, step: int, place: int, session: int) -> int:
    """The seed of sample `session` of the batch's question `place`: the same again after a resume."""
    step_part = step_seed(recipe.params.seed, recipe.name, step)
    return int(np.random.SeedSequence([step_part, place, session]).generate_state(1, np.uint64)[0]) >> 1


def _output(turn: Turn, episode: Episode, versions: Sequence[int], counts: Mapping[str, float]) -> AgentLoopOutput:
    """verl wants a reward: an unscored episode says 0 here and its verdict beside it, which the trainer reads."""
    return AgentLoopOutput(
        prompt_ids=list(turn.prompt_ids),
        response_ids=list(turn.response_ids),
        response_mask=[1] * len(turn.response_ids),
        response_logprobs=list(turn.logprobs),
        reward_score=episode.reward or 0.0,
        num_turns=len(episode.turns),
        metrics=AgentLoopMetrics(),
        extra_fields={
            "verdict": episode.verdict.value,
            "lenient": episode.lenient,
            "judge": (PROCESS, dict(counts)),
            "finish": turn.finish.value,
            "min_global_steps": min(versions),
            "max_global_steps": max(versions),
            "reward_extra_info": {},
            "turn_scores": [],
            "tool_rewards": [],
        },
    )
