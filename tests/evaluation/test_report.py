"""The report from made-up metrics of a whole run."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from tasks.artifacts import write_bytes, write_items, write_json
from tasks.errors import InputError
from tasks.evaluation import charts, pipeline_tables, provenance, sections, tables
from tasks.evaluation import report as stage
from tasks.evaluation import sources as sources_module
from tasks.evaluation.benchmarks.results import BenchmarkCell, BenchmarkScores
from tasks.evaluation.charts import running_mean
from tasks.evaluation.files import BENCHMARKS, METRICS, PICTURE, REPLIES, TEST_ITEMS, TRAIN_ITEMS, write_replies
from tasks.evaluation.overlap import overlap
from tasks.evaluation.pages import excerpt, html_page, markdown_page, markdown_text
from tasks.evaluation.provenance import Origin, params_hash, without_password
from tasks.evaluation.scores import (
    Cell,
    CheckpointScores,
    Comparison,
    Evaluation,
    Interval,
    LongScores,
    Provenance,
    Reply,
)
from tasks.evaluation.sections import compose
from tasks.evaluation.sources import SELF_PLAY, Curves, SelfPlay, choose_examples, read_sources
from tasks.filtering.funnel import Funnel, FunnelRow, Outcome
from tasks.merge.metrics import TensorWeights, summarise
from tasks.params import RL_STAGES, Params
from tasks.records import Domain, Finish, Item, Verdict
from tasks.tracking import NullTracker
from tests.evaluation.conftest import ItemFactory

HOSTILE = "<script>alert(1)</script> | [x](http://example.org) </td>"
PNG = b"\x89PNG picture"
GAIN = Interval(difference=0.25, low=-0.0125, high=0.5, questions=8)


def cell(domain: Domain | None, tokens: int | None, average: float | None, gain: Interval | None) -> Cell:
    return Cell(
        domain=domain,
        context_tokens=tokens,
        questions=4,
        guess=0.2,
        greedy=average,
        first=average,
        average=average,
        pass_at_k=average,
        majority=average,
        gain=gain,
        response_tokens=12.34,
        truncated_share=0.125,
        unanswered_share=0.0,
        unscored_share=0.5,
    )


def scores(checkpoint: str, average: float | None, gain: Interval | None) -> CheckpointScores:
    keys = [(domain, tokens) for domain in (None, *Domain) for tokens in (None, 128, 512)]
    return CheckpointScores(
        checkpoint=checkpoint,
        cells=tuple(cell(domain, tokens, average, gain) for domain, tokens in keys),
        longest_reply=40,
        generated_tokens=1234,
        thinking_share=0.25,
        cut_share=0.0,
    )


def pair(first: str, second: str, p: float | None) -> Comparison:
    return Comparison(
        first=first,
        second=second,
        pairs=0 if p is None else 7,
        only_first=1,
        only_second=5,
        unscored=1,
        p=p,
        adjusted_p=p,
        gain=None if p is None else GAIN,
    )


@pytest.fixture
def evaluation() -> Evaluation:
    long = LongScores(
        checkpoint="stage4",
        domain=None,
        context_tokens=1024,
        questions=4,
        guess=0.1,
        agent=0.75,
        truncation=0.5,
        evidence_cut_share=0.5,
        gain=GAIN,
    )
    return Evaluation(
        samples=4,
        temperature=0.7,
        top_p=0.95,
        window=128,
        checkpoints=(scores("base", 0.5, None), scores("stage1", None, None), scores("stage4", 0.75, GAIN)),
        long=(long,),
        too_long=(4096,),
        comparisons=(pair("base", "stage1", None), pair("stage1", "stage4", 0.25), pair("base", "stage4", 0.0004)),
        provenance=Provenance(git_commit="abc", params_sha256="def", python="3.11", versions={"torch": "2"}),
    )


def curve(steps: int) -> dict[str, object]:
    return {
        "stage": "ignored",
        "steps": [
            {
                "step": step + 1,
                "reward": step / steps if step % 3 else None,
                "domain_rewards": {"multi_hop": step / steps, "dialogue_memory": None},
                "entropy": 0.3 - 0.2 * step / steps,
                "gate": step < 2,
                "kept_share": 1.0,
                "response_length": 20.0,
                "truncated_share": 0.0,
                "gradient_norm": None,
                "unscored_share": 0.0,
            }
            for step in range(steps)
        ],
    }


def reply(item: Item, checkpoint: str, mode: str = "greedy", text: str = HOSTILE) -> Reply:
    return Reply(
        checkpoint=checkpoint,
        mode=mode,
        question_id=item.question.id,
        domain=item.question.domain,
        context_tokens=item.length_bucket,
        sample=0,
        verdict=Verdict.WRONG,
        finish=Finish.FINISHED,
        extracted=True,
        response_tokens=3,
        cut=False,
        evidence_cut=False,
        text=text,
    )


def game_round(number: int, proposed: int, verified: int, rate: float | None) -> dict[str, object]:
    return {
        "round": number,
        "proposed": proposed,
        "well_formed": verified,
        "verified": verified,
        "mean_solve_rate": rate,
        "mean_verified_rate": rate,
        "mean_answer_words": rate,
    }


def lineage(stage: str) -> dict[str, object]:
    parent = {"path": "models/base", "sha256": "c" * 64}
    data = {"path": f"data/curated/{stage}.parquet", "sha256": "d" * 64}
    return {
        "stage": f"rl-{stage}",
        "parents": [parent],
        "inputs": {"data": data, "model": parent},
        "params": {"seed": 0},
        "git_commit": "e" * 40,
        "run_id": f"run-of-{stage}",
    }


def origin(stage: str, path: Path) -> Origin:
    run = None if stage == "merge" else f"run-of-{stage}"
    return Origin(stage, path, "a" * 64, run, run and "a-pipeline", run and "b" * 40, {"test": "f" * 64} if run else {})


@pytest.fixture
def checkout(
    scratch: Path, params: Params, evaluation: Evaluation, item: ItemFactory, monkeypatch: pytest.MonkeyPatch
) -> NullTracker:
    hostile = item("b", tokens=512, documents=(f"{HOSTILE} w1",), options=("w1", HOSTILE), gold="A")
    items = [item("a", Domain.MULTI_HOP, 512), hostile, item("a", Domain.MULTI_HOP, 128)]
    write_json(METRICS, evaluation)
    write_items(TEST_ITEMS, items)
    write_replies(REPLIES, [reply(each, name) for each in items for name in ("base", "stage4")])
    for number, name in enumerate(RL_STAGES):
        write_json(Path(f"metrics/rl-{name}.json"), curve(3 + number))
    tensor = TensorWeights(
        name="model.x.weight",
        parameters=10,
        moved=9,
        energies=(4e-9, 1e-9),
        weights=(0.8, 0.2),
        mergekit_weights=(0.5, 0.5),
        falls_back=True,
        scale=2.0**14,
    )
    write_json(Path("metrics/merge.json"), summarise("base", ("stage3", "memory"), 0.9, (tensor,)))
    rows = (
        FunnelRow("train", Domain.MULTI_HOP, "knowledge_graph", Outcome.NEAR_DUPLICATE, 3),
        FunnelRow("train", Domain.MULTI_HOP, "knowledge_graph", Outcome.KEPT, 7),
        FunnelRow("train", Domain.DIALOGUE_MEMORY, "self_play", Outcome.NOT_ROBUST, 1),
        FunnelRow("train", Domain.DIALOGUE_MEMORY, "self_play", Outcome.KEPT, 2),
        FunnelRow("test", Domain.MULTI_HOP, "knowledge_graph", Outcome.UNGROUNDED, 3),
    )
    write_json(Path("metrics/verify.json"), Funnel(16, 9, rows, (), {}, {}))
    write_bytes(PICTURE, PNG)
    balance = {
        "bins": 2,
        "before": {"multi_hop": [5, 2]},
        "after": {"multi_hop": [2, 2]},
        "generators": {"knowledge_graph": 4},
    }
    write_json(Path("metrics/balance.json"), balance)
    rounds = [game_round(1, 4, 3, 0.75), game_round(2, 4, 0, None)]
    write_json(SELF_PLAY, {"rounds": rounds, "difficulty": {}})
    write_items(TRAIN_ITEMS, [item("t", documents=("w5",), evidence=("d9",))])
    for name in ("stage1", "stage4"):
        write_json(Path(f"checkpoints/{name}/lineage.json"), lineage(name))
    (scratch / params.base_model).mkdir(parents=True)
    tracker = NullTracker()

    @contextmanager
    def stage_run(*_: object) -> Iterator[NullTracker]:
        yield tracker

    monkeypatch.setattr(stage, "stage_run", stage_run)
    monkeypatch.setattr(sources_module, "origins", lambda files, _: tuple(map(origin, files.values(), files)))
    return tracker


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of tables and words need no drawing."""
    for name in ("progress", "long_documents", "training_curves", "self_play", "funnel", "merge_weights"):
        monkeypatch.setattr(sections.charts, name, lambda *_: "<svg ></svg>")


def html(params: Params) -> str:
    return html_page(compose(read_sources(params), params))


def markdown(params: Params) -> str:
    return markdown_page(compose(read_sources(params), params))


def plain(grid: tables.Grid) -> list[list[str]]:
    return [[entry.plain() for entry in row] for row in grid.rows]


def test_score_table(evaluation: Evaluation) -> None:
    grid = tables.by_length(evaluation)
    assert grid.header == ("checkpoint", "128 tokens", "512 tokens", "mean of lengths")
    assert plain(grid) == [
        ["guessing", "20.0", "20.0", "20.0"],
        ["base", "50.0", "50.0", "50.0"],
        ["stage1", "–", "–", "–"],
        ["stage4", *["75.0 (+25.0 [−1.2, 50.0])"] * 3],
    ]
    assert tables.by_domain(evaluation).header[1:] == tuple(domain.replace("_", " ") for domain in Domain)


def test_other_tables(checkout: NullTracker, params: Params, evaluation: Evaluation) -> None:
    sources = read_sources(params)
    assert plain(tables.replies(evaluation))[0] == [
        "base", "50.0", "50.0", "50.0", "50.0", "50.0", "12.3", "12.5", "0.0", "50.0", "40", "1,234",
    ]  # fmt: skip
    assert plain(tables.long_documents(evaluation)) == [
        ["stage4", "1024 tokens (8 × the window)", "4", "75.0 (+25.0 [−1.2, 50.0])", "50.0", "10.0", "50.0 %"]
    ]
    training = pipeline_tables.stage_grid(pipeline_tables.training_stages(sources.funnel, sources.balance))
    assert training.header == (
        "after", "dropped", "remain", "knowledge graph", "self play", "multi hop", "dialogue memory",
    )  # fmt: skip
    assert plain(training) == [
        ["synthesised", "", "13", "10", "3", "10", "3"],
        ["near duplicate", "−3", "10", "7", "3", "7", "3"],
        ["never right on extended context", "−1", "9", "7", "2", "7", "2"],
        ["balanced", "−5", "4", "4", "0", "4", "0"],
    ]
    assert plain(pipeline_tables.funnel(sources.funnel, "test")) == [
        ["synthesised", "", "3", "3", "3"],
        ["answered without documents", "−3", "0", "0", "0"],
    ]
    assert plain(pipeline_tables.funnel(sources.funnel, "development")) == [["synthesised", "", "0"]]
    assert plain(pipeline_tables.balance(sources.balance)) == [["multi hop", "5 → 2", "2 → 2", "4 of 7"]]
    assert plain(pipeline_tables.merge_weights(sources.merge)) == [
        ["stage3", "0.800", "0.500"],
        ["memory", "0.200", "0.500"],
    ]
    assert [row[1].value for row in pipeline_tables.training(sources.curves).rows] == ["3", "4", "5", "6", "7"]
    assert plain(pipeline_tables.training(sources.curves))[0][-1] == "2 of 3"


def test_headlines(evaluation: Evaluation) -> None:
    assert [value for _, value, _ in tables.headlines(evaluation)] == [*["+25.0 [−1.2, 50.0]"] * 3, "5 to 1"]
    assert tables.headlines(evaluation)[-1][2].endswith("McNemar p < 0.001")
    assert len(tables.headlines(evaluation.model_copy(update={"long": (), "comparisons": ()}))) == 2


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([3, 3, 3], "▁▁▁"),
        ([5], "▁"),
        ([0] * 16 + [1] * 16, "▁" * 8 + "█" * 8),
    ],
)
def test_sparkline(values: list[float], expected: str) -> None:
    assert pipeline_tables.sparkline(values) == expected


def test_curve_without_any_value() -> None:
    steps = [{**step, "reward": None} for step in curve(2)["steps"]]
    row = pipeline_tables.training({"x": Curves.model_validate({"steps": steps})}).rows[0]
    assert row[2].plain() == "–"


def test_running_mean_skips_gaps() -> None:
    means = running_mean([1.0, None, 3.0, None, None, None], 3)
    assert means[:4] == [1.0, 2.0, 3.0, 3.0]
    assert str(means[4]) == str(means[5]) == "nan"


def test_examples_are_chosen_without_looking_at_replies(item: ItemFactory) -> None:
    items = [
        item("b", tokens=512),
        item("a", tokens=128),
        item("c", tokens=512),
        item("h", Domain.MULTI_HOP, 512),
    ]
    replies = [reply(items[0], "base"), reply(items[0], "base", "sampled"), reply(items[2], "base")]
    examples = choose_examples(items, replies)
    assert [example.item.question.id for example in examples] == ["h", "b"]
    assert [len(example.replies) for example in examples] == [0, 1]


def test_excerpt_shows_the_gold_answer(item: ItemFactory) -> None:
    long = " ".join(["w7"] * 300 + ["w1"] + ["w8"] * 300)
    (example,) = choose_examples([item(documents=("w3", long), evidence=("d1",))], [])
    piece = excerpt(example)
    assert "w1" in piece
    assert piece.startswith("… ")
    assert piece.endswith(" …")
    (missing,) = choose_examples([item(documents=("w3",), evidence=("d0",), gold="w9")], [])
    assert excerpt(missing) == "w3"


def test_markdown_text_is_one_harmless_line() -> None:
    assert markdown_text("a|b\n<i> *x*") == r"a\|b \<i\> \*x\*"


def test_stage(quick: None, checkout: NullTracker, params: Params, capsys: pytest.CaptureFixture[str]) -> None:
    stage.run(params)
    pictures = ["progress", "long_documents", "training", "self_play", "funnel", "questions", "merge"]
    assert checkout.artifacts[:2] == [stage.HTML, stage.MARKDOWN]
    assert [path.stem for path in checkout.artifacts[2:]] == pictures
    assert sorted(stage.FOLDER.iterdir()) == sorted(checkout.artifacts)
    assert (stage.FOLDER / "questions.png").read_bytes() == PNG
    linked = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", stage.MARKDOWN.read_text("utf-8"))
    assert linked == [path.name for path in checkout.artifacts[2:]]
    shown = capsys.readouterr().out
    assert "+25.0 [−1.2, 50.0]" in shown
    assert f"mlflow ui --backend-store-uri {params.tracking.uri}" in shown
    assert str(stage.HTML) in shown


def test_html_is_whole_self_contained_escapes_foreign_text_and_repeats(checkout: NullTracker, params: Params) -> None:
    report, again = (compose(read_sources(params), params) for _ in range(2))
    page = html_page(report)
    assert page == html_page(again)
    assert markdown_page(report) == markdown_page(again)
    assert [picture.content for picture in report.pictures] == [picture.content for picture in again.pictures]
    assert page.count("<svg") == page.count("</svg>") == page.count('role="img" aria-label="') == 6
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert page.count("gate on above") == 1
    assert "lenient" not in page
    assert "4096 tokens" in page
    assert page.count("data:image/png;base64,iVBORyBwaWN0dXJl") == 1
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)|url\((?!#)|@import""", page.replace("xlink:", ""))


def test_markdown_escapes_foreign_text(quick: None, checkout: NullTracker, params: Params) -> None:
    page = markdown(params)
    assert "<script>" not in page
    assert "[x](http" not in page
    assert "![All questions by domain, kept and dropped](questions.png)" in page
    widths = [line.count(" | ") for line in page.splitlines() if line.startswith("| stage4 | 75")]
    assert set(widths) == {3, 7, 11}  # by length, the recipe, the replies


def test_without_long_documents(quick: None, checkout: NullTracker, params: Params, evaluation: Evaluation) -> None:
    write_json(METRICS, evaluation.model_copy(update={"long": ()}))
    assert html(params).count("<svg") == 5


def test_gate_and_lenient_score_are_drawn_where_there_are_any() -> None:
    steps = [{**step, "lenient_score": 0.5, "gate": False} for step in curve(2)["steps"]]
    drawing = charts.training_curves({"stage1": Curves.model_validate({"steps": steps})}, None)
    assert "gate on above" not in drawing
    assert "lenient" in drawing


@pytest.mark.parametrize("name", ["evaluation", "rl-stage2", "merge", "verify", "balance", "synthesize-self_play"])
def test_missing_or_broken_metrics(checkout: NullTracker, params: Params, name: str) -> None:
    path = Path(f"metrics/{name}.json")
    broken = json.loads(path.read_text())
    path.write_text(json.dumps(dict.fromkeys(broken, "x")))
    with pytest.raises(InputError, match=f"{name}.json"):
        stage.run(params)
    path.unlink()
    with pytest.raises(InputError, match="does not exist"):
        stage.run(params)
    assert not stage.HTML.exists()


def test_checkpoints_in_pairs(evaluation: Evaluation) -> None:
    assert plain(tables.comparisons(evaluation)) == [
        ["base → stage1", "–", "1", "5", "–", "–", "0", "1"],
        ["stage1 → stage4", "+25.0 [−1.2, 50.0]", "1", "5", "0.250", "0.250", "7", "1"],
        ["base → stage4", "+25.0 [−1.2, 50.0]", "1", "5", "< 0.001", "< 0.001", "7", "1"],
    ]


def test_one_checkpoint_alone(quick: None, checkout: NullTracker, params: Params, evaluation: Evaluation) -> None:
    alone = {"checkpoints": evaluation.checkpoints[:1], "comparisons": (), "long": ()}
    write_json(METRICS, evaluation.model_copy(update=alone))
    page = html(params)
    assert "Checkpoints in pairs" not in page
    assert "McNemar" not in page
    assert '<div class="tiles"></div>' in page  # nothing to be ahead of


def test_all_unscored_shows_no_figure(
    quick: None, checkout: NullTracker, params: Params, evaluation: Evaluation
) -> None:
    silent = tuple(scores(name, None, None) for name in ("base", "stage4"))
    pairs = (pair("base", "stage4", None),)
    write_json(METRICS, evaluation.model_copy(update={"checkpoints": silent, "comparisons": pairs, "long": ()}))
    assert set(plain(tables.recipe(read_sources(params).evaluation, None))[1][1:]) == {"–"}
    assert not re.search(r"\bnan\b", markdown(params))
    assert "color-mix" not in html(params).partition("</style>")[2]


def test_recipe_without_benchmarks(evaluation: Evaluation) -> None:
    grid = tables.recipe(evaluation, None)
    assert grid.header[-2:] == ("all", "agent, 8 × window")
    assert [row[-1].value for row in grid.rows] == ["–", "–", "–", "75.0"]
    assert [row[-2].value for row in grid.rows] == ["20.0", "50.0", "–", "75.0"]
    assert [row[-2].level for row in grid.rows] == [None, 0.5, None, 0.75]
    assert len({len(row) for row in grid.rows} | {len(grid.header)}) == 1


def benchmark(name: str, checkpoint: str, way: str = "truncation", subset: str | None = None) -> BenchmarkCell:
    return BenchmarkCell(
        benchmark=name,
        checkpoint=checkpoint,
        way=way,
        subset=subset,
        tasks=503,
        samples=2,
        official=0.5,
        robust=0.25,
        first=0.125,
        best=0.75,
        unscored_share=0.01,
        unanswered_share=0.02,
        truncated_share=0.03,
        cut_share=0.04,
        output_tokens=99.5,
        gain=GAIN if checkpoint == "stage4" else None,
    )


@pytest.fixture
def benchmarks() -> BenchmarkScores:
    cells = (
        benchmark("mrcr", "base"),
        benchmark("mrcr", "stage4"),
        benchmark("mrcr", "stage4", subset="8 needles"),
        benchmark("mrcr", "stage4", "agent"),
    )
    return BenchmarkScores(
        cells=cells,
        sources={"mrcr": f"revision 1 {HOSTILE}"},
        window=1000,
        max_output_tokens=50,
        temperature=0.7,
        top_p=0.95,
        judge=None,
        provenance=Provenance(git_commit="abc", params_sha256="def", python="3.11", versions={}),
    )


def test_benchmarks_are_columns_of_the_recipe(evaluation: Evaluation, benchmarks: BenchmarkScores) -> None:
    grid = tables.recipe(evaluation, benchmarks)
    assert grid.header[-3:] == ("agent, 8 × window", "mrcr", "mrcr, agent")
    assert [row[-2].plain() for row in grid.rows] == ["–", "25.0", "–", "25.0 (+25.0 [−1.2, 50.0])"]
    assert [row[-1].value for row in grid.rows] == ["–", "–", "–", "25.0"]
    assert plain(tables.benchmark_cells(benchmarks))[2] == [
        "mrcr (8 needles)", "stage4", "503", "50.0", "25.0 (+25.0 [−1.2, 50.0])", "12.5", "75.0", "2",
        "99.5", "3.0", "2.0", "1.0", "4.0",
    ]  # fmt: skip


def test_benchmarks_in_the_pages(
    quick: None, checkout: NullTracker, params: Params, benchmarks: BenchmarkScores
) -> None:
    assert "none were asked" in html(params)
    write_json(BENCHMARKS, benchmarks)
    page = html(params)
    assert "<h2>Benchmarks</h2>" in page
    assert "<script" not in page
    assert "training was not checked against them" in page  # filtering.benchmarks is null
    assert "metrics/benchmarks.json" in page


def test_rounds_of_self_play(quick: None, checkout: NullTracker, params: Params) -> None:
    assert plain(pipeline_tables.rounds(read_sources(params).self_play)) == [
        ["1", "4", "3", "3", "75.0 %", "75.0 %"],
        ["2", "4", "0", "0", "– %", "– %"],
    ]
    write_json(SELF_PLAY, SelfPlay(rounds=()))
    assert "Self-play" not in html(params)


def test_overlap_by_hand(item: ItemFactory) -> None:
    """One document of the same id, another of the same text under another id, and one question asked twice."""
    asked = [item("a", documents=("w1 w2", "w3"), evidence=("d0",)), item("b", documents=("w1 w2",), evidence=("d0",))]
    trained = [item("a", documents=("w1 w2",), evidence=("d0",)), item("c", documents=("w1 w2",), evidence=("d0",))]
    shared = overlap(trained, asked, ngram=5)
    assert (shared.train_items, shared.test_items) == (2, 2)
    assert (shared.train_documents, shared.test_documents) == (1, 2)
    assert (shared.document_ids, shared.document_texts, shared.questions) == (1, 1, 1)
    renamed = [one.model_copy(update={"document_ids": ("other",)}) for one in trained]
    assert (overlap(renamed, asked, 5).document_ids, overlap(renamed, asked, 5).document_texts) == (0, 1)
    nothing = overlap([], [], 5)
    assert (nothing.document_ids, nothing.document_texts, nothing.questions) == (0, 0, 0)


def test_where_figures_are_from(checkout: NullTracker, params: Params) -> None:
    sources = read_sources(params)
    rows = {row[0]: row for row in plain(pipeline_tables.origins(sources.origins))}
    assert rows["evaluate (held-out scores)"][1:] == [
        "metrics/evaluation.json (sha256 aaaaaaaaaaaa)",
        "run-of-evaluate (pipeline a-pipeline)",
        "bbbbbbbbbbbb",
        "test ffffffffffff",
    ]
    assert rows["merge (weights)"][2:] == ["none in the store has this file", "–", "–"]
    base, stage1, _ = plain(pipeline_tables.checkpoints(sources.checkpoints))
    assert base == ["base", "–", "–", "–", "given"]
    assert stage1[1:3] == ["run-of-stage1", "eeeeeeeeeeee"]
    assert stage1[3] == params_hash({"seed": 0})[:12]
    assert stage1[4] == "models/base cccccccccccc, data/curated/stage1.parquet dddddddddddd"


class Store:
    """An MLflow store of two finished evaluations, the later one of another file."""

    def __init__(self, **_: object) -> None:
        tags = {"posttrain.pipeline": "p", "mlflow.source.git.commit": "c", "sha256.test": "t"}
        self.runs = {
            name: SimpleNamespace(info=SimpleNamespace(run_id=name), data=SimpleNamespace(tags=tags))
            for name in ("later", "earlier", "without")
        }

    def get_experiment_by_name(self, _: str) -> SimpleNamespace:
        return SimpleNamespace(experiment_id="1")

    def search_runs(self, _: list[str], query: str, **__: object) -> list[SimpleNamespace]:
        return [*self.runs.values()] if "'evaluate'" in query else []

    def download_artifacts(self, run_id: str, name: str, folder: str) -> str:
        if run_id == "without":
            raise OSError(name)
        path = Path(folder) / name
        path.write_text("{}" if run_id == "earlier" else "[]")
        return str(path)


def test_a_run_is_named_by_the_bytes_it_wrote(scratch: Path, params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlflow.MlflowClient", lambda **_: Store())
    kept, lost = Path("kept.json"), Path("lost.json")
    kept.write_text("{}")
    lost.write_text("1")
    found = provenance.origins({kept: "evaluate", lost: "evaluate"}, params.tracking)
    assert [one.run_id for one in found] == ["earlier", None]
    assert (found[0].pipeline, found[0].git_commit, found[0].data) == ("p", "c", {"test": "t"})
    assert (found[1].pipeline, found[1].git_commit, found[1].data) == (None, None, {})


def test_an_unreachable_store_leaves_runs_unknown(
    scratch: Path, params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise OSError("no store")

    monkeypatch.setattr("mlflow.MlflowClient", refuse)
    path = Path("file.json")
    path.write_text("{}")
    (found,) = provenance.origins({path: "evaluate"}, params.tracking)
    assert found.run_id is None
    assert len(found.sha256) == 64


def test_addresses_are_shown_without_password() -> None:
    assert without_password("postgresql://me:secret@host/runs") == "postgresql://***@host/runs"
    assert without_password("sqlite:///mlflow.db") == "sqlite:///mlflow.db"
