"""What the report says around its tables and pictures."""

from tasks.evaluation.benchmarks.results import BenchmarkScores
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
    "memory branch starts from stage 3, stage 4 from the merged model. Clipped or masked are tokens of replies below "
    "their group's mean that negative gradient clipping or the entropy gate kept out of the loss. The table goes from "
    "the first to the last tenth of each stage."
)
SELF_PLAY = (
    "Each round shows the proposer more documents and its verified questions, and asks for harder ones. The solve rate "
    "is the share of solvers that were right: of every well-formed question, and of those that were verified and kept."
)
ORIGINS = (
    "A run is named where the MLflow store holds one whose artifact has the very bytes of the file that this report "
    "read. Checkpoints name theirs in lineage.json; python -m tasks.lineage checkpoints/NAME follows one back to its "
    "documents. Hashes are SHA-256, mostly their first digits."
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
        f"avg@{evaluation.samples} in percent by domain, each length counting the same. Small print: difference from "
        "the base on the same questions in points, with the 95 % interval of a paired bootstrap over questions. "
        "Guessing is the expected score of a guess by someone who sees the item without understanding it. The memory "
        "agent answers greedily; benchmarks, where any were asked, show the robust score."
    )


def comparisons(evaluation: Evaluation) -> str:
    """Which test answers what, and over what it is corrected."""
    return (
        "Each checkpoint against the one before it, then against the base. The difference is of sampled replies "
        f"(avg@{evaluation.samples}), in points with its paired bootstrap interval, which is not corrected. McNemar's "
        "exact test asks of greedy replies whether the items that only one of the two gets right are split evenly. "
        f"Holm: p corrected over the {len(evaluation.comparisons)} pairs of this table. Items without a verdict from "
        "one of the two are left out and counted."
    )


def replies(evaluation: Evaluation) -> str:
    """What each way of scoring is."""
    k = evaluation.samples
    return (
        f"Greedy is one reply at temperature 0; all else is of {k} sampled replies an item. pass@1: the first of them; "
        f"avg@{k}: their mean; best of {k}: an oracle picks, so it is right if any is; majority of {k}: the answer "
        "that most of them state. Percent, the mean of lengths; unscored replies are left out, unanswered ones (none "
        "of the forms that state an answer was found) are wrong. Tokens and shares are of sampled replies; all tokens "
        "generated include greedy replies and every turn of the memory agent."
    )


def benchmarks(found: BenchmarkScores) -> str:
    """How to read the benchmarks."""
    return (
        f"Percent, at temperature {found.temperature:g} and top-p {found.top_p:g}. Official: as the benchmark's own "
        "scorer gives it; robust: as a careful reader would. pass@1 (the first sample) and best of N (an oracle picks) "
        "are robust scores. The denominator is fixed: what failed, or has no verdict, counts as 0. Small print: "
        "difference from the first checkpoint on the same tasks with its 95 % interval; below a name, the subset."
    )


def contamination(found: BenchmarkScores | None, params: Params) -> str:
    """What was looked for, and what was not."""
    text = (
        "Verification drops training questions that a held-out split or an evaluation set holds; below that, the "
        "stored files are compared again. Shared words are found, a paraphrase is not. Runs of words that more than "
        "ten training questions hold are phrases of templates and do not count."
    )
    if found and params.filtering.benchmarks is None:
        text += " The benchmarks scored above were not given to verification: training was not checked against them."
    return text


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
