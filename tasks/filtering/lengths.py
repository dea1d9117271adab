"""Which length each question's context gets: the input limits of stages 1–3, dealt out evenly."""

from collections.abc import Callable, Sequence

from tasks.filtering.contamination import digest
from tasks.params import Params


def buckets(params: Params) -> dict[int, int]:
    """Input limit → output limit (tokens) of stages 1–3, ascending; of equal inputs the last one counts."""
    stages = [params.rl.stages["stage1"], params.rl.stages["stage2"], params.rl.stages["stage3"]]
    return {stage.max_input_tokens: stage.max_output_tokens for stage in stages}


def deal(shortest: Sequence[int], limits: Sequence[int]) -> list[int | None]:
    """Deal questions to the ascending `limits`, equally many each as far as their evidence fits.

    `shortest[i]` is the prompt length of question i with its evidence alone. The first questions that fit
    take the shortest limit, so the caller shuffles. None marks evidence longer than every limit.
    """
    dealt: list[int | None] = [None] * len(shortest)
    open_ = [index for index, length in enumerate(shortest) if length <= limits[-1]]
    for place, limit in enumerate(limits):
        share = -(-len(open_) // (len(limits) - place))
        for index in [index for index in open_ if shortest[index] <= limit][:share]:
            dealt[index] = limit
        open_ = [index for index in open_ if dealt[index] is None]
    return dealt


def bucket_of(input_tokens: int, limits: Sequence[int]) -> int | None:
    """The smallest limit that holds a prompt; None when it exceeds all."""
    return min((limit for limit in limits if input_tokens <= limit), default=None)


def remembered(count: Callable[[str], int]) -> Callable[[str], int]:
    """Count the tokens of each text once, keeping its digest instead of the text: documents are large."""
    known: dict[bytes, int] = {}

    def counted(text: str) -> int:
        key = digest(text)
        if key not in known:
            known[key] = count(text)
        return known[key]

    return counted
