"""What the report says around its tables and pictures."""

from tasks.evaluation.charts import SMOOTHING
from tasks.evaluation.scores import Evaluation
from tasks.filtering.funnel import Funnel
from tasks.merge.metrics import MergeMetrics
from tasks.params import Params

EXAMPLES = (
    "One held-out item a domain, the first by id at the longest context, chosen before looking at any reply. "
    "The excerpt is from an evidence document; replies are greedy."
)
TRAINING = (
    f"Thin lines are single steps, thick ones the mean of {SMOOTHING}. The stages follow one another; the "
    "memory branch starts from stage 3, stage 4 from the merged model."
)


def title(params: Params) -> str:
    """Name of the report."""
    return f"Post-training report: profile {params.profile}"


def subtitle(evaluation: Evaluation) -> str:
    """How much was asked of whom."""
    whole = evaluation.checkpoints[0].cell(None, None)
    return (
        f"{whole.questions if whole else 0} held-out items from documents that never served training, "
        f"{len(evaluation.checkpoints)} checkpoints, avg@{evaluation.samples} at temperature "
        f"{evaluation.temperature:g} and top-p {evaluation.top_p:g}."
    )


def scores(evaluation: Evaluation) -> str:
    """How to read the score tables."""
    return (
        f"avg@{evaluation.samples} in percent, all domains. Small print: difference from the base on the "
        "same questions in points, with the 95 % interval of a paired bootstrap over questions. Guessing is "
        "the expected score of a guess by someone who sees the item without understanding it."
    )


def long_documents(evaluation: Evaluation) -> str:
    """How to read the comparison, and which lengths are missing."""
    text = (
        "The memory agent reads everything chunk by chunk; middle truncation shows the model the beginning "
        f"and the end of the documents, as much as fits into {evaluation.window} tokens. Small print: agent "
        "minus truncation in points with its 95 % interval. Evidence cut: how often truncation hit the "
        "document with the answer. Only questions whose evidence is one document."
    )
    if evaluation.too_long:
        lengths = ", ".join(str(tokens) for tokens in evaluation.too_long)
        text += f" Not measured: {lengths} tokens, the held-out documents do not fill that."
    return text


def merge(metrics: MergeMetrics) -> str:
    """What the merge did."""
    return (
        f"SCE over the base with select_topk {metrics.select_topk:g}: {metrics.moved_share:.1%} of "
        f"{metrics.parameters:,} parameters moved. In {metrics.fallback_tensors} of {len(metrics.tensors)} "
        "tensors the deltas were so small that mergekit alone would have averaged uniformly; they were "
        "rescaled first."
    )


def funnel(result: Funnel) -> str:
    """What the tables count."""
    asked = sum(row.count for row in result.rows if row.split == "train")
    return (
        f"{result.questions} synthesised questions, {asked} of them for training; {result.kept} kept by verification. "
        "The first table says what remains of the training questions after each check that dropped any. Balancing "
        "takes, per domain, as many from each bin of the base model's pass rate (last table: before → after)."
    )
