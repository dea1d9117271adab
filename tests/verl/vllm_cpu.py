"""What vLLM's worker needs on a CPU to take new weights again and again. Loaded in that process alone.

vLLM packs every matrix for its CPU kernels when a model is loaded; of linear layers it then throws the weights away, of
the output layer it goes on using the packed copy. Either way new weights would never be used. Kept plain, they are.
"""

from typing import Any

import torch
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension
from vllm.model_executor.layers import utils


def keep_weights(layer: torch.nn.Module, remove_weight: bool) -> None:
    layer.cpu_linear = torch.nn.functional.linear


class PlainWeights(vLLMColocateWorkerExtension):
    """verl's extension of vLLM's worker, made before the model is loaded."""

    def __new__(cls, **options: Any) -> "PlainWeights":
        utils.dispatch_cpu_unquantized_gemm = keep_weights
        return super().__new__(cls, **options)
