"""Score the checkpoint of one cell on held-out items: metrics/ablation.json and data/ablation.json.

`python -m flows.ablation` runs it in each cell, after stage 1 has trained.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tasks.ablation.cells import CellScores, QuestionScore
from tasks.ablation.results import figures_of
from tasks.artifacts import read_items, stage_lock, write_json
from tasks.checkpoints import check_checkpoint
from tasks.cli import stage_command
from tasks.errors import InputError
from tasks.evaluation.answering import Reader, answer, prompt_of
from tasks.evaluation.files import TEST_ITEMS
from tasks.evaluation.metrics import SCORE, average_at_k, share
from tasks.evaluation.scores import Reply
from tasks.params import Params
from tasks.progress import meter
from tasks.records import Finish, Item, Verdict
from tasks.tokenization import ChatTokenizer
from tasks.tracking import stage_run

CHECKPOINT = Path("checkpoints/stage1")
SCORES = Path("data/ablation.json")
METRICS = Path("metrics/ablation.json")


def run(params: Params) -> None:
    """The cell's last stage."""
    with stage_lock("ablation"), stage_run("ablation", params) as tracker:
        check_checkpoint(CHECKPOINT)
        items = read_items(TEST_ITEMS)
        if not items:
            raise InputError(f"{TEST_ITEMS} holds no item; raise synthesis.test_questions_per_domain")
        tracker.log_dataset(TEST_ITEMS, "test")
        scores = summarise(ask(items, params))
        figures = figures_of(scores)
        write_json(SCORES, scores)
        write_json(METRICS, figures)
        tracker.log_summary(figures)
    print(f"{len(scores.questions)} held-out items: {100 * figures['average/all']:.1f} % on the mean of lengths")


def ask(items: Sequence[Item], params: Params) -> list[Reply]:
    """Sampled replies of the trained checkpoint, judged by the rules alone."""
    from tasks.generation.models import open_generator  # torch: not for --help

    tokenizer = ChatTokenizer.load(CHECKPOINT)
    prompts = [prompt_of(item, params.memory.window, tokenizer) for item in items]
    with meter("ablation", len(prompts)) as progress:
        generator = open_generator(CHECKPOINT, params.execution, params.threads)
        reader = Reader("stage1", generator, tokenizer, params, progress)
        return answer(reader, prompts, "sampled", reader.sampled)


def summarise(replies: Sequence[Reply]) -> CellScores:
    """avg@k of each question, in the order of ids and lengths, the same in every cell."""
    by_question: dict[tuple[str, int], list[float]] = defaultdict(list)
    for reply in replies:
        by_question[reply.question_id, reply.context_tokens].append(SCORE[reply.verdict])
    return CellScores(
        questions=tuple(
            QuestionScore(question_id=name, context_tokens=length, average=_average(scores))
            for (name, length), scores in sorted(by_question.items())
        ),
        response_tokens=sum(reply.response_tokens for reply in replies) / len(replies),
        truncated_share=share([reply.finish is Finish.TRUNCATED for reply in replies]),
        unscored_share=share([reply.verdict is Verdict.UNSCORED for reply in replies]),
    )


def _average(scores: Sequence[float]) -> float | None:
    mean = float(average_at_k(np.array([scores], dtype=np.float64))[0])
    return None if np.isnan(mean) else mean


if __name__ == "__main__":
    stage_command(__doc__.splitlines()[0], None, run)
