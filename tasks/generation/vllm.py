"""Samples replies with vLLM inside this process: for GPUs, and for models that transformers runs too slowly."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.checkpoints import check_checkpoint
from tasks.generation.base import Completion, Sampling
from tasks.generation.offline import TokenRequest, check_fits, sample_groups
from tasks.generation.schemas import strict_schema
from tasks.generation.seeds import derived
from tasks.records import Finish
from tasks.tokenization import ChatTokenizer

if TYPE_CHECKING:
    from vllm import LLM, RequestOutput, SamplingParams

# The library that transformers' samplers use as well (guidance.py), with its compact spacing.
HELD = {"backend": "guidance", "disable_any_whitespace": True}


class VllmGenerator:
    """Implements `Generator` and `Sampler`. Each reply is drawn with a seed of its own, from its request; vLLM batches
    as it sees fit, so equal seeds give equal replies up to float rounding. Log-probabilities are not given back.
    """

    def __init__(self, engine: "LLM", tokenizer: ChatTokenizer) -> None:
        self._engine = engine
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, folder: Path, context_tokens: int | None = None) -> "VllmGenerator":
        """Load a HF folder onto all GPUs that this process sees, or the CPU.

        Args:
            context_tokens: of prompt and reply; None takes as many as the model has and the memory holds.
        """
        check_checkpoint(folder)
        tokenizer = ChatTokenizer.load(folder)
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        import torch
        from vllm import LLM

        gpus = torch.cuda.device_count()
        engine = LLM(
            str(folder),
            max_model_len=context_tokens or -1,
            tensor_parallel_size=max(1, gpus),
            dtype="auto" if gpus else "float32",  # CPUs without matrix units are slower in half precision
            enforce_eager=not gpus,  # compiling for a CPU takes longer than most runs
            structured_outputs_config=HELD,
        )
        return cls(engine, tokenizer)

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int | Sequence[int]
    ) -> list[list[Completion]]:
        """Return `sampling.samples` completions per prompt, in order.

        Raises:
            InputError: a prompt is empty, or with its reply exceeds the context.
        """
        return sample_groups(self, prompts, sampling, seed)

    def sample(self, requests: Sequence[TokenRequest]) -> list[Completion]:
        """One completion a request, in order; errors as in `generate`."""
        check_fits(requests, self._engine.model_config.max_model_len)
        prompts: list[Any] = [{"prompt_token_ids": list(request.prompt)} for request in requests]
        settings = [self._settings(request) for request in requests]
        return [self._completion(output) for output in self._engine.generate(prompts, settings, use_tqdm=False)]

    def _settings(self, request: TokenRequest) -> "SamplingParams":
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        held = StructuredOutputsParams(json=strict_schema(request.schema)) if request.schema else None
        return SamplingParams(
            temperature=request.sampling.temperature,
            top_p=request.sampling.top_p,
            max_tokens=request.sampling.max_new_tokens,
            seed=derived(request.seed, *request.prompt),
            stop_token_ids=[self._tokenizer.end_id],
            structured_outputs=held,
            detokenize=False,
        )

    def _completion(self, output: "RequestOutput") -> Completion:
        reply = output.outputs[0]
        ids = tuple(reply.token_ids)
        finished = reply.finish_reason == "stop"
        text = self._tokenizer.decode(ids[:-1] if finished else ids)
        return Completion(ids, text, Finish.FINISHED if finished else Finish.TRUNCATED)
