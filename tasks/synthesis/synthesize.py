"""Stage `synthesize@NAME`: documents become questions whose answers are known.

`python -m tasks.synthesis.synthesize {knowledge_graph|tables|self_play}` writes
data/synthesized/NAME.parquet and metrics/synthesize-NAME.json.

knowledge_graph writes multi-hop and multiple choice, tables corpus-level numbers, self_play reading
comprehension and dialogue memory.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tasks.cli import stage_command
from tasks.errors import InputError
from tasks.params import Params
from tasks.records import Document, Domain, Question, Split
from tasks.synthesis.questions import Harvest

DOCUMENTS = Path("data/corpus/documents.parquet")
SYNTHESIZED = Path("data/synthesized")
METRICS = Path("metrics")
NAMES = ("knowledge_graph", "tables", "self_play")
FULL_CONTEXT_STAGES: tuple[Literal["stage1", "stage2", "stage3"], ...] = ("stage1", "stage2", "stage3")
DEVELOPMENT_SHARE = 1 / 3  # of the number of test questions

Harvests = Mapping[Domain, Harvest]
Writer = Callable[[Sequence[Document], Split, int], Harvests]


def run(name: str, params: Params) -> None:
    """Read the documents, ask, write the questions."""
    from tasks.artifacts import read_documents, stage_lock, write_json, write_questions
    from tasks.tracking import stage_run

    stage = f"synthesize-{name}"
    with stage_lock(stage), stage_run(stage, params) as tracker:
        tracker.log_dataset(DOCUMENTS, "documents")
        questions, metrics = synthesize(name, params, read_documents(DOCUMENTS))
        write_questions(SYNTHESIZED / f"{name}.parquet", questions)
        write_json(METRICS / f"{stage}.json", metrics)
        tracker.log_metrics({f"questions/{key}": number for key, number in metrics["questions"].items()}, 0)
        tracker.log_artifact(METRICS / f"{stage}.json")


def synthesize(name: str, params: Params, documents: Sequence[Document]) -> tuple[list[Question], dict[str, Any]]:
    """Ask about the documents of each split separately; return the questions and what there is to report.

    Raises:
        InputError: a domain gets no question from the training or from the test documents.
    """
    write = writers(params)[name]
    questions: list[Question] = []
    rejections: dict[str, Counter[str]] = {}
    for split, wanted in wanted_questions(params).items():
        own = [document for document in documents if document.split == split]
        for domain, harvest in write(own, split, wanted).items() if own else ():
            if not harvest.questions and split != "development":
                raise InputError(_nothing(domain, split, harvest))
            questions += harvest.questions
            rejections[f"{domain}/{split}"] = +harvest.rejections
    return questions, {
        "wanted": wanted_questions(params),
        **_counts(questions),
        "rejections": rejections,
    }


def wanted_questions(params: Params) -> dict[Split, int]:
    """Questions per domain and split; the test split gets its number for each input limit of stages 1–3."""
    buckets = len({params.rl.stages[stage].max_input_tokens for stage in FULL_CONTEXT_STAGES})
    test = params.synthesis.test_questions_per_domain * buckets
    train = params.synthesis.questions_per_domain
    return {"train": train, "development": round(test * DEVELOPMENT_SHARE), "test": test}


def writers(params: Params) -> dict[str, Writer]:
    """The three paths by name."""
    return {
        "knowledge_graph": partial(_knowledge_graph, params),
        "tables": partial(_tables, params),
        "self_play": partial(_self_play, params),
    }


def _knowledge_graph(params: Params, documents: Sequence[Document], split: Split, wanted: int) -> Harvests:
    from tasks.synthesis.facts import choice_questions
    from tasks.synthesis.multi_hop import multi_hop_questions

    return {
        Domain.MULTI_HOP: multi_hop_questions(documents, split, wanted, params.synthesis.max_hops, params.seed),
        Domain.MULTIPLE_CHOICE: choice_questions(documents, split, wanted, params.seed),
    }


def _tables(params: Params, documents: Sequence[Document], split: Split, wanted: int) -> Harvests:
    from tasks.synthesis.tables import numeric_questions

    return {Domain.CORPUS_NUMERIC: numeric_questions(documents, split, wanted, params.seed)}


def _self_play(params: Params, documents: Sequence[Document], split: Split, wanted: int) -> Harvests:
    """Training questions come from self-play, filled up with stated facts.

    Held-out questions are stated facts only: a model must not write the test by which it is judged.
    """
    from tasks.synthesis.dialogues import dialogue_questions
    from tasks.synthesis.facts import reading_questions

    played = _play(params, documents, split, wanted) if split == "train" else Harvest()
    asked = frozenset(question.question for question in played.questions)
    stated = reading_questions(documents, split, wanted - len(asked), params.seed, asked)
    reading = Harvest(played.questions + stated.questions, played.rejections + stated.rejections)
    return {
        Domain.READING_COMPREHENSION: reading,
        Domain.DIALOGUE_MEMORY: dialogue_questions(documents, split, wanted, params.seed),
    }


def _play(params: Params, documents: Sequence[Document], split: Split, wanted: int) -> Harvest:
    import torch

    from tasks.generation.base import Sampling
    from tasks.generation.local import LocalGenerator
    from tasks.synthesis.self_play import Rules, SelfPlay
    from tasks.tokenization import ChatTokenizer

    torch.set_num_threads(params.threads)
    stage, sampling = params.rl.stages["stage1"], params.rl.sampling
    rules = Rules(
        rounds=params.synthesis.self_play_rounds,
        history_size=params.synthesis.history_size,
        votes=params.synthesis.solver_votes,
        context_tokens=stage.max_input_tokens,
        sampling=Sampling(sampling.temperature, sampling.top_p, stage.max_output_tokens),
        seed=params.seed,
    )
    tokenizer = ChatTokenizer.load(params.base_model)
    return SelfPlay(LocalGenerator.load(params.base_model), tokenizer, rules).play(documents, split, wanted)


def _nothing(domain: Domain, split: Split, harvest: Harvest) -> str:
    reasons = ", ".join(f"{reason} ({count})" for reason, count in (+harvest.rejections).items())
    return (
        f"the {split} documents give no {domain} question: {reasons or 'they state nothing to ask about'}; "
        "add documents, or switch corpus.countries on"
    )


def _counts(questions: Sequence[Question]) -> dict[str, dict[str, int]]:
    return {
        "questions": _tally(f"{question.domain}/{question.split}" for question in questions),
        "difficulty": _tally(f"{q.domain}/{q.split}/{q.difficulty}" for q in questions),
        "known_by": _tally(f"{q.domain}/{q.split}/{q.provenance['kind']}" for q in questions),
    }


def _tally(keys: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(keys).items()))


if __name__ == "__main__":
    stage_command("Turn documents into questions whose answers are known.", NAMES, run)
