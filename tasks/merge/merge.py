"""Merge the stage-3 model and the memory expert into one (QwenLong-L1.5 §4.4): checkpoints/merged.

The output is the stage-3 folder with other weights: same shards, dtype, config, tokenizer, chat template and
generation config; embeddings that were tied stay tied.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.artifacts import atomic_folder, sha256_of, stage_lock, write_json
from tasks.checkpoints import INDEX_FILE, check_checkpoint, stored_tensors
from tasks.cli import stage_command
from tasks.errors import CheckpointError
from tasks.lineage import write_lineage
from tasks.merge.metrics import MergeMetrics, TensorWeights, summarise
from tasks.params import Params
from tasks.tracking import stage_run

if TYPE_CHECKING:
    from torch import Tensor

STAGE3 = Path("checkpoints/stage3")
MEMORY = Path("checkpoints/memory")
MERGED = Path("checkpoints/merged")
METRICS = Path("metrics/merge.json")
NOT_COPIED = ("README.md", "lineage.json", INDEX_FILE)
SMOKE_TOKENS = 2


def run(params: Params) -> None:
    """The merge stage."""
    import torch  # not for --help

    torch.set_num_threads(params.threads)
    inputs = {"base": params.base_model, "stage3": STAGE3, "memory": MEMORY}
    with stage_lock("merge"), stage_run("merge", params) as tracker:
        for folder in inputs.values():
            check_checkpoint(folder)
        hashes = {name: sha256_of(folder) for name, folder in inputs.items()}
        for name, folder in inputs.items():
            tracker.log_dataset(folder, name)
        with atomic_folder(MERGED) as folder:
            metrics = merge_checkpoints(params.base_model, (STAGE3, MEMORY), folder, params.merge.select_topk)
            check_checkpoint(folder)
            smoke_test(folder, params)
            (folder / "README.md").write_text(model_card(metrics), "utf-8")
            write_lineage(
                folder,
                stage="merge",
                inputs=inputs,
                input_hashes=hashes,
                params=params,
                parents=(STAGE3, MEMORY),
                run_id=tracker.run_id,
            )
        write_json(METRICS, metrics.model_dump(mode="json"))
        tracker.log_metrics(tracked(metrics), step=0)
        tracker.log_artifact(METRICS)
        tracker.log_dataset(MERGED, "merged")
    print(describe(metrics))


def merge_checkpoints(base: Path, models: Sequence[Path], folder: Path, select_topk: float) -> MergeMetrics:
    """Write the merge into `folder`, shaped like the first model, shard by shard."""
    from tasks.merge.mergekit import config_yaml, merge_config

    first = models[0]
    stored = {model: stored_tensors(model) for model in (base, *models)}
    check_same_tensors({model: set(tensors) for model, tensors in stored.items()})
    weights: list[TensorWeights] = []
    for shard in sorted({tensor.shard for tensor in stored[first].values()}):
        names = [name for name, tensor in stored[first].items() if tensor.shard == shard]
        weights += merge_shard(base, models, names, folder / shard, select_topk)
    for path in first.iterdir():
        if path.is_file() and path.suffix != ".safetensors" and path.name not in NOT_COPIED:
            shutil.copyfile(path, folder / path.name)
    if (first / INDEX_FILE).exists():
        shutil.copyfile(first / INDEX_FILE, folder / INDEX_FILE)
    (folder / "mergekit_config.yml").write_text(config_yaml(merge_config(base, models, select_topk)), "utf-8")
    return summarise(str(base), tuple(str(model) for model in models), select_topk, tuple(weights))


def check_same_tensors(names: Mapping[Path, set[str]]) -> None:
    """All inputs must hold the same tensors; otherwise one of them is no descendant of the base."""
    (first, expected), *others = names.items()
    for folder, found in others:
        if different := sorted(expected ^ found):
            raise CheckpointError(
                f"{different[0]} is in only one of {first} and {folder}; "
                "merge models of one architecture, saved in one layout"
            )


def merge_shard(
    base: Path, models: Sequence[Path], names: Sequence[str], output: Path, select_topk: float
) -> list[TensorWeights]:
    """Merge the named tensors into one file, in the dtype of the first model."""
    from safetensors.torch import save_file

    from tasks.merge.mergekit import join_experts, merge_tensors

    first, *others = [read_tensors(model, names) for model in models]
    merged = merge_tensors(read_tensors(base, names), [first, *others], select_topk)
    joined = join_experts({name: item.tensor for name, item in merged.items()}, like=first)
    save_file(
        {name: tensor.to(first[name].dtype) for name, tensor in joined.items()},
        output,
        metadata={"format": "pt"},
    )
    return [
        TensorWeights(
            name=name,
            parameters=item.tensor.numel(),
            moved=item.moved,
            energies=item.calculation.energies,
            weights=item.calculation.weights,
            mergekit_weights=item.calculation.mergekit_weights,
            falls_back=item.calculation.falls_back,
            scale=item.scale,
        )
        for name, item in merged.items()
    ]


def read_tensors(folder: Path, names: Sequence[str]) -> dict[str, "Tensor"]:
    """Read tensors by name, whichever shards of the checkpoint they lie in."""
    from safetensors import safe_open

    stored = stored_tensors(folder)
    tensors: dict[str, Tensor] = {}
    for shard in sorted({stored[name].shard for name in names}):
        with safe_open(folder / shard, framework="pt") as file:
            tensors |= {name: file.get_tensor(name) for name in names if stored[name].shard == shard}
    return tensors


def smoke_test(folder: Path, params: Params) -> None:
    """Load the merged model as later stages will and let it write two tokens: it must stop there."""
    from tasks.generation.base import Sampling
    from tasks.generation.models import open_generator
    from tasks.tokenization import ChatTokenizer

    prompt = ChatTokenizer.load(folder).prompt_ids("question")
    sampling = Sampling(temperature=0.0, top_p=1.0, max_new_tokens=SMOKE_TOKENS)
    generator = open_generator(folder, params.execution, params.threads)
    ((completion,),) = generator.generate([prompt], sampling, seed=0)
    if not 1 <= len(completion.token_ids) <= SMOKE_TOKENS:
        raise CheckpointError(
            f"{folder} wrote {len(completion.token_ids)} tokens, {SMOKE_TOKENS} were allowed; "
            "check its generation config"
        )


def tracked(metrics: MergeMetrics) -> dict[str, float]:
    """The figures that MLflow shows."""
    return {
        "moved_share": metrics.moved_share,
        "fallback_tensors": float(metrics.fallback_tensors),
        **{
            f"weight/{Path(model).name}": weight
            for model, weight in zip(metrics.models, metrics.mean_weights, strict=True)
        },
    }


def describe(metrics: MergeMetrics) -> str:
    """One paragraph for the terminal and the model card."""
    shares = ", ".join(
        f"{Path(model).name} {weight:.3f} (mergekit alone: {plain:.3f})"
        for model, weight, plain in zip(
            metrics.models, metrics.mean_weights, metrics.mean_mergekit_weights, strict=True
        )
    )
    return (
        f"SCE, select_topk {metrics.select_topk}, base {metrics.base_model}: "
        f"{metrics.moved_share:.1%} of the parameters moved; mean weights {shares}; "
        f"in {metrics.fallback_tensors} of {len(metrics.tensors)} tensors the deltas were so small that "
        "mergekit would have averaged uniformly, so they were rescaled first"
    )


def model_card(metrics: MergeMetrics) -> str:
    """README.md of the merged checkpoint."""
    return (
        "---\nlibrary_name: transformers\ntags: [merge, mergekit]\n---\n"
        "# merged: stage 3 and the memory expert\n\n"
        f"{describe(metrics)}.\n\n"
        f"{metrics.parameters:,} parameters. Tokenizer, chat template and generation config are those of "
        f"`{metrics.models[0]}`. The mergekit description is `mergekit_config.yml`; weights per tensor "
        f"are in `{METRICS}`; `lineage.json` leads back to the documents.\n"
    )


if __name__ == "__main__":
    stage_command(__doc__.splitlines()[0], None, run)
