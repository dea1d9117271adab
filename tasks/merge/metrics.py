"""What metrics/merge.json holds: how each tensor was weighted, with mergekit's fallback and without."""

from tasks.records import Record


class TensorWeights(Record):
    """Effective SCE weights of one tensor, one number per merged model.

    `energies` are the mean squares of the selected deltas; `weights` what was used; `mergekit_weights` what
    mergekit would have used on the unscaled deltas; `scale` the factor on the deltas.
    """

    name: str
    parameters: int
    moved: int
    energies: tuple[float, ...]
    weights: tuple[float, ...]
    mergekit_weights: tuple[float, ...]
    falls_back: bool
    scale: float


class MergeMetrics(Record):
    """The merge as a whole. `moved_share` is the share of parameters that differ from the base afterwards."""

    base_model: str
    models: tuple[str, ...]
    select_topk: float
    parameters: int
    moved_share: float
    fallback_tensors: int
    mean_weights: tuple[float, ...]  # over parameters
    mean_mergekit_weights: tuple[float, ...]
    tensors: tuple[TensorWeights, ...]


def summarise(
    base_model: str, models: tuple[str, ...], select_topk: float, tensors: tuple[TensorWeights, ...]
) -> MergeMetrics:
    """Aggregate the tensors, each counting with its number of parameters."""
    parameters = sum(tensor.parameters for tensor in tensors)

    def mean(rows: list[tuple[float, ...]]) -> tuple[float, ...]:
        weighted = [
            sum(row[model] * tensor.parameters for row, tensor in zip(rows, tensors, strict=True))
            for model in range(len(models))
        ]
        return tuple(total / parameters for total in weighted)

    return MergeMetrics(
        base_model=base_model,
        models=models,
        select_topk=select_topk,
        parameters=parameters,
        moved_share=sum(tensor.moved for tensor in tensors) / parameters,
        fallback_tensors=sum(tensor.falls_back for tensor in tensors),
        mean_weights=mean([tensor.weights for tensor in tensors]),
        mean_mergekit_weights=mean([tensor.mergekit_weights for tensor in tensors]),
        tensors=tensors,
    )
