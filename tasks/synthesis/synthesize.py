"""Stage `synthesize@NAME`: documents become questions whose answers are known.

`python -m tasks.synthesis.synthesize {knowledge_graph|tables|self_play}` writes
data/synthesized/NAME.parquet and metrics/synthesize-NAME.json.

knowledge_graph writes multi-hop and multiple choice, tables corpus-level numbers, self_play reading
comprehension and dialogue memory. `synthesis.writer` says who reads and words: the closed grammar, or a model.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tasks.cli import stage_command
from tasks.params import Params
from tasks.prompts import instruction
from tasks.records import Domain, Question, Split

if TYPE_CHECKING:
    from tasks.corpus.library import Library
    from tasks.generation.base import Sampling
    from tasks.generation.watched import Watched
    from tasks.synthesis.graph import GraphReport
    from tasks.synthesis.language import Language
    from tasks.synthesis.players import Players
    from tasks.synthesis.questions import Harvest
    from tasks.synthesis.self_play import RoundRecord
    from tasks.synthesis.tables.asking import Language as TableLanguage
    from tasks.synthesis.tables.readers import Reader

DOCUMENTS = Path("data/corpus/documents.parquet")
SYNTHESIZED = Path("data/synthesized")
METRICS = Path("metrics")
NAMES = ("knowledge_graph", "tables", "self_play")
FULL_CONTEXT_STAGES: tuple[Literal["stage1", "stage2", "stage3"], ...] = ("stage1", "stage2", "stage3")
DEVELOPMENT_SHARE = 1 / 3  # of the number of test questions
EVIDENCE_SHARE = 0.5  # of the longest input limit, for the documents of one corpus-level question
MEMORY = "writer"  # .work/writer keeps what the model answered, for all stages: they ask some of the same

Harvests = Mapping[Domain, "Harvest"]


@dataclass
class Report:
    """What there is to say beside the questions: rejected candidates, the graph of each split, rounds of self-play."""

    rejections: dict[str, dict[str, int]] = field(default_factory=dict)
    graphs: "dict[str, GraphReport | None]" = field(default_factory=dict)
    rounds: "tuple[RoundRecord, ...]" = ()
    out_of_budget: bool = False


def run(name: str, params: Params) -> None:
    """Read the documents, ask, write the questions."""
    from tasks.artifacts import stage_lock, write_json, write_questions
    from tasks.corpus.library import Library
    from tasks.tracking import stage_run

    stage = f"synthesize-{name}"
    with stage_lock(stage), stage_run(stage, params) as tracker, writing(stage, params) as model:
        tracker.log_dataset(DOCUMENTS, "documents")
        questions, metrics = synthesize(name, params, Library.open(DOCUMENTS), model)
        write_questions(SYNTHESIZED / f"{name}.parquet", questions)
        write_json(METRICS / f"{stage}.json", metrics)
        tracker.log_metrics({f"questions/{key}": number for key, number in metrics["questions"].items()}, 0)
        tracker.log_metrics({f"writer/{key}": number for key, number in metrics["writer"].items()}, 0)
        for number, curve in curves(metrics["rounds"]):
            tracker.log_metrics(curve, number)
        tracker.log_artifact(METRICS / f"{stage}.json")
    for line in (*rounds_said(metrics["rounds"]), *shortfalls(metrics)):
        print(line)  # verification decides whether what there is suffices


@contextmanager
def writing(stage: str, params: Params) -> "Iterator[Watched | None]":
    """The writer model, its replies counted on the terminal; None where the grammar writes."""
    if params.synthesis.writer.type == "grammar":
        yield None
        return
    from tasks.generation.models import open_writer
    from tasks.generation.watched import Watched
    from tasks.progress import meter

    with meter(stage, None) as progress:
        yield Watched(open_writer(params, MEMORY), progress)


def synthesize(
    name: str, params: Params, library: "Library", model: "Watched | None"
) -> tuple[list[Question], dict[str, Any]]:
    """Ask about the documents of each split separately; return the questions and what there is to report.

    Domains that no batch draws from are not asked for.
    """
    desk = Desk(params, library, model)
    write = {"knowledge_graph": desk.knowledge_graph, "tables": desk.tables, "self_play": desk.self_play}[name]
    questions: list[Question] = []
    for split, wanted in wanted_questions(params).items():
        for domain, harvest in write(split, wanted).items():
            questions += [desk.instructed(question) for question in harvest.questions]
            desk.report.rejections[f"{domain}/{split}"] = dict(+harvest.rejections)
    return questions, {
        "wanted": wanted_questions(params),
        **_counts(questions),
        **asdict(desk.report),
        "writer": {} if model is None else dict(model.counts()),
    }


def wanted_questions(params: Params) -> dict[Split, int]:
    """Questions per domain and split; the test split gets its number for each input limit of stages 1–3."""
    buckets = len({params.rl.stages[stage].max_input_tokens for stage in FULL_CONTEXT_STAGES})
    test = params.synthesis.test_questions_per_domain * buckets
    train = params.synthesis.questions_per_domain
    return {"train": train, "development": round(test * DEVELOPMENT_SHARE), "test": test}


def curves(rounds: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, dict[str, float]]]:
    """How self-play went, a point a round; a mean of nothing is no point."""
    for record in rounds:
        values = {f"self_play/{name}": value for name, value in record.items() if value is not None and name != "round"}
        yield record["round"], values


def rounds_said(rounds: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line a round: solve rates that fall are questions that get harder."""
    for record in rounds:
        rate = record["mean_solve_rate"]
        yield (
            f"self-play round {record['round']}: {record['proposed']} proposed, {record['well_formed']} well-formed, "
            f"{record['verified']} verified, solved {'by none' if rate is None else f'{rate:.0%}'}"
        )


def shortfalls(metrics: Mapping[str, Any]) -> Iterator[str]:
    """A line for each domain and split with fewer questions than wanted, and why."""
    for place, reasons in metrics["rejections"].items():
        wanted, found = metrics["wanted"][place.partition("/")[2]], metrics["questions"].get(place, 0)
        if found < wanted:
            shown = ", ".join(f"{reason} ({number})" for reason, number in Counter(reasons).most_common())
            yield f"{place}: {found} of {wanted} questions; {shown or 'the documents state nothing else to ask about'}"


@dataclass(frozen=True)
class Desk:
    """Where questions are written: the three paths, in the grammar's language or the model's."""

    params: Params
    library: "Library"
    model: "Watched | None"
    report: Report = field(default_factory=Report)

    def knowledge_graph(self, split: Split, wanted: int) -> Harvests:
        """Questions over several facts, and multiple choice over one."""
        from tasks.synthesis.knowledge_graph import knowledge_graph_questions
        from tasks.synthesis.makers import GraphRules

        synthesis = self.params.synthesis
        rules = GraphRules(synthesis.max_hops, synthesis.min_documents, self.params.seed)
        harvests = knowledge_graph_questions(self.library, split, wanted, rules, self.language())
        self.report.graphs[split] = harvests[Domain.MULTI_HOP].offer
        return {domain: harvest for domain, harvest in harvests.items() if self.needs(domain)}

    def tables(self, split: Split, wanted: int) -> Harvests:
        """Questions over cells of many documents."""
        from tasks.synthesis.tables.asking import Rules, corpus_questions
        from tasks.tokenization import ChatTokenizer

        if not self.needs(Domain.CORPUS_NUMERIC):
            return {}
        longest = max(self.params.rl.stages[stage].max_input_tokens for stage in FULL_CONTEXT_STAGES)
        count = ChatTokenizer.load(self.params.base_model).count
        rules = Rules(round(EVIDENCE_SHARE * longest), count, self.params.seed)
        asked = corpus_questions(self.library, split, wanted, rules, *self._table_language())
        return {Domain.CORPUS_NUMERIC: asked}

    def self_play(self, split: Split, wanted: int) -> Harvests:
        """Training questions come from self-play, filled up with stated facts.

        Held-out questions are stated facts only: a model must not write the test by which it is judged.
        """
        from tasks.synthesis.dialogues import dialogue_questions

        harvests: dict[Domain, Harvest] = {}
        if self.needs(Domain.READING_COMPREHENSION):
            harvests[Domain.READING_COMPREHENSION] = self._reading(split, wanted)
        if self.needs(Domain.DIALOGUE_MEMORY):
            asked = dialogue_questions(self.library, split, wanted, self.params.seed, self.language())
            harvests[Domain.DIALOGUE_MEMORY] = asked
        return harvests

    def needs(self, domain: Domain) -> bool:
        """Whether training draws from the domain."""
        return self.params.rl.domain_weights.get(domain, 0.0) > 0

    def language(self) -> "Language":
        """Who reads facts and words questions."""
        from tasks.synthesis.language import GrammarLanguage, ModelLanguage

        return GrammarLanguage() if self.model is None else ModelLanguage(self.model, self.params.seed)

    def instructed(self, question: Question) -> Question:
        """A model that was not taught the form of our replies must be told it (q_inst, QwenLong-L1.5 §4.4)."""
        if self.model is None:
            return question
        return question.model_copy(update={"instruction": instruction(question.answer_kind)})

    def _table_language(self) -> "tuple[Reader, TableLanguage]":
        from tasks.synthesis.tables.asking import Language
        from tasks.synthesis.tables.readers import LayoutReader, Readers, ReportReader
        from tasks.synthesis.tables.report_templates import REPORT_TEMPLATES
        from tasks.synthesis.tables.schema import SchemaReader
        from tasks.synthesis.tables.templates import TEMPLATES
        from tasks.synthesis.tables.wording import AsWritten, ModelWording

        if self.model is None:
            return ReportReader(), Language(REPORT_TEMPLATES, AsWritten())
        sampling, seed = self._sampling(self.model.max_output_tokens), self.params.seed
        by_schema = SchemaReader(self.model, self.params.synthesis.schema_votes, sampling, seed)
        return Readers([LayoutReader(), by_schema]), Language(TEMPLATES, ModelWording(self.model, sampling, seed))

    def _reading(self, split: Split, wanted: int) -> "Harvest":
        from tasks.synthesis.facts import reading_questions
        from tasks.synthesis.questions import Harvest

        played = self._played(split, wanted) if split == "train" else Harvest()
        asked = frozenset(question.question for question in played.questions)
        missing, seed = wanted - len(played.questions), self.params.seed
        stated = reading_questions(self.library, split, missing, seed, self.language(), asked)
        return Harvest(played.questions + stated.questions, played.rejections + stated.rejections)

    def _played(self, split: Split, wanted: int) -> "Harvest":
        from tasks.synthesis.self_play import Rules, play

        synthesis = self.params.synthesis
        rules = Rules(
            rounds=synthesis.self_play_rounds,
            history_size=synthesis.history_size,
            votes=synthesis.solver_votes,
            blind_votes=synthesis.solver_votes if self.model else 0,  # verification asks the closed game's model again
            max_answer_tokens=self.params.filtering.max_answer_tokens,
            seed=self.params.seed,
        )
        played = play(self._players(), self.library, split, wanted, rules)
        self.report.rounds, self.report.out_of_budget = played.rounds, played.out_of_budget
        return played.harvest

    def _players(self) -> "Players":
        if self.model is not None:
            from tasks.synthesis.model_players import ModelPlayers

            sampling = self.params.rl.sampling
            return ModelPlayers(self.model, sampling.temperature, sampling.top_p)
        from tasks.generation.models import open_generator
        from tasks.synthesis.closed_players import ClosedPlayers
        from tasks.tokenization import ChatTokenizer

        params, stage = self.params, self.params.rl.stages["stage1"]
        return ClosedPlayers(
            generator=open_generator(params.base_model, params.execution, params.threads),
            tokenizer=ChatTokenizer.load(params.base_model),
            sampling=self._sampling(stage.max_output_tokens),
            prompt_tokens=stage.max_input_tokens,
        )

    def _sampling(self, output_tokens: int) -> "Sampling":
        from tasks.generation.base import Sampling

        return Sampling(self.params.rl.sampling.temperature, self.params.rl.sampling.top_p, output_tokens)


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
