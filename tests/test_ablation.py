"""The ablation: a ladder of single steps, intervals by hand, and cells that are done once."""

import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from prefect.testing.utilities import prefect_test_harness

from flows import ablation as flow_module
from flows.ablation import ablation
from flows.ablation_request import AblationRequest
from flows.experiments import open_start, start_name
from tasks.ablation.cells import (
    SCORES,
    TRAINING,
    Cell,
    CellScores,
    QuestionScore,
    Step,
    Training,
    cell_name,
    read_cells,
)
from tasks.ablation.charts import differences as differences_picture
from tasks.ablation.charts import scores as scores_picture
from tasks.ablation.charts import training as training_picture
from tasks.ablation.ladder import NAIVE, ladder, overrides, settings
from tasks.ablation.pages import html_page, markdown_page, verdict
from tasks.ablation.results import compared, figures_of, results_of
from tasks.ablation.statistics import Bounds, difference, seed_means, spread, student
from tasks.errors import InputError, ParameterError, PipelineError
from tasks.params import Params, load_params
from tests.conftest import CHECKOUT

# ── the ladder ──


def test_each_variant_differs_from_its_predecessor_by_one_parameter(params: Params):
    variants = ladder(params.rl)
    for name, variant in variants.items():
        if variant.predecessor is not None:
            before, after = settings(variants, variant.predecessor), settings(variants, name)
            assert [key for key in after if after[key] != before[key]] == [variant.parameter]
    assert settings(variants, "naive") == NAIVE
    assert len({json.dumps(settings(variants, name)) for name in variants}) == len(variants) == 9


def test_the_ladder_leads_to_the_recipe_as_shipped(params: Params):
    active = load_params(CHECKOUT / "params.yaml", overrides(ladder(params.rl), "recipe", params.seed))
    assert active == params


def test_a_cell_changes_the_ladders_parameters_and_the_seed_and_nothing_else(params: Params):
    variants = ladder(params.rl)
    for name in variants:
        cell = load_params(CHECKOUT / "params.yaml", overrides(variants, name, 7))
        kept = {"batches", "advantage", "clipping", "entropy_control"}
        assert cell.rl.model_dump(exclude=kept) == params.rl.model_dump(exclude=kept)
        assert cell.model_dump(exclude={"rl", "seed"}) == params.model_dump(exclude={"rl", "seed"})
        assert cell.seed == 7


def test_the_low_side_clips_the_same_share_as_the_high_one(params: Params):
    variants = ladder(params.rl)
    assert variants["token_high"].value == {"type": "quantile", "level": "token", "side": "high", "quantile": 0.8}
    assert variants["sequence_low"].value == {"type": "quantile", "level": "sequence", "side": "low", "quantile": 0.2}


def test_the_training_stage_depends_on_all_that_the_ladder_changes():
    """Otherwise DVC would restore one variant's checkpoint for another."""
    declared = yaml.safe_load((CHECKOUT / "dvc.yaml").read_text("utf-8"))["stages"]["rl"]["do"]["params"]
    assert {*NAIVE, "seed"} <= set(declared)


def test_the_trainer_draws_from_one_pool_where_batches_are_uniform():
    from tasks.rl.loop import make_sampler
    from tests.rl.tiny import tiny_items, tiny_params

    rl = tiny_params().rl
    drawn = {
        batches: set(make_sampler(tiny_items(), rl.model_copy(update={"batches": batches}), 0).state().streams)
        for batches in ("uniform", "balanced")
    }
    assert drawn == {"uniform": {"all"}, "balanced": {"multi_hop", "reading_comprehension"}}


@pytest.mark.parametrize("override", ["rl.clipping={type: none}", "rl.entropy_control=null"])
def test_a_ladder_without_thresholds_is_refused(override: str):
    with pytest.raises(ParameterError, match=override.partition("=")[0]):
        ladder(load_params(CHECKOUT / "params.yaml", (override,)).rl)


# ── statistics ──

STRATA = np.array([1, 1, 2])
ONE = np.array([[0.0, 0.5, 1.0], [0.0, 0.5, 0.0]])  # seeds × questions
OTHER = np.array([[0.5, 0.5, 1.0], [1.0, 1.0, 0.0]])


def compare(model, base, comparisons=1, resamples=2000):
    return difference(model, base, STRATA, comparisons, resamples, np.random.default_rng(0))


def test_a_seeds_mean_weighs_lengths_alike():
    """Seed 1: ((0 + ½)/2 + 1)/2 = 0.625; seed 2: (¼ + 0)/2."""
    assert seed_means(ONE, STRATA) == pytest.approx((0.625, 0.125))
    assert math.isnan(seed_means(np.full((1, 3), np.nan), STRATA)[0])


def test_a_difference_and_its_intervals_by_hand():
    """Per seed ((½ + 0)/2 + 0)/2 = 0.125 and ((1 + ½)/2 + 0)/2 = 0.375. Questions, averaged over seeds: ¾, ¼ and 0:
    the mean of a resample lies between (¼ + 0)/2 and (¾ + 0)/2, each end in a quarter of the resamples.
    """
    found = compare(OTHER, ONE)
    assert found is not None
    assert found.per_seed == pytest.approx((0.125, 0.375))
    assert found.mean == pytest.approx(0.25)
    assert (found.questions.low, found.questions.high) == pytest.approx((0.125, 0.375))
    reach = 12.706 * math.sqrt(2) * 0.125 / math.sqrt(2)  # t of one degree of freedom × sd / √2
    assert (found.seeds.low, found.seeds.high) == pytest.approx((0.25 - reach, 0.25 + reach), rel=1e-3)


def test_intervals_for_all_comparisons_together_are_wider():
    rng = np.random.default_rng(1)
    model, base = rng.random((3, 40)), rng.random((3, 40))
    found = difference(model, base, np.ones(40, dtype=np.int64), 15, 4000, np.random.default_rng(0))
    for single, together in ((found.questions, found.all_questions), (found.seeds, found.all_seeds)):
        assert together.low < single.low < found.mean < single.high < together.high


def test_equal_differences_leave_no_doubt_and_unscored_questions_do_not_count():
    found = compare(ONE + 0.25, ONE)
    assert (found.all_questions, found.all_seeds) == (Bounds(0.25, 0.25), Bounds(0.25, 0.25))
    unscored = ONE.copy()
    unscored[:, 0] = np.nan
    assert compare(unscored + 0.25, ONE).mean == pytest.approx(0.25)
    assert compare(np.full_like(ONE, np.nan), ONE) is None


def test_a_single_seed_says_nothing_about_seeds():
    found = compare(OTHER[:1], ONE[:1])
    assert (found.seeds, found.all_seeds) == (None, None)
    assert student((0.1, math.nan), 0.95) is None
    assert (spread((0.4,)), spread((0.0, 2.0))) == (0.0, pytest.approx(math.sqrt(2)))


# ── cells and pages ──


def made_cell(variant: str, seed: int, averages, steps: int = 3) -> Cell:
    questions = tuple(
        QuestionScore(question_id=f"q{n}", context_tokens=(128, 128, 256)[n], average=average)
        for n, average in enumerate(averages)
    )
    step = Step(reward=0.5, entropy=0.1, response_length=9.0, kept_share=0.75, gate=True)
    scores = CellScores(questions=questions, response_tokens=10.0, truncated_share=0.25, unscored_share=0.0)
    return Cell(variant, seed, scores, Training(skipped=1, steps=(step,) * steps))


def write_cell(folder: Path, cell: Cell) -> None:
    path = folder / cell_name(cell.variant, cell.seed)
    path.mkdir(parents=True)
    (path / SCORES).write_text(cell.scores.model_dump_json())
    (path / TRAINING).write_text(cell.training.model_dump_json())


CELLS = [
    made_cell("naive", 0, (0.0, 0.5, 1.0)),
    made_cell("naive", 1, (0.0, 0.5, 0.0)),
    made_cell("balanced", 0, (0.5, 0.5, 1.0)),
    made_cell("balanced", 1, (1.0, 1.0, None)),
]


def test_cells_are_read_in_the_order_of_the_ladder(tmp_path, params):
    for cell in reversed(CELLS):
        write_cell(tmp_path, cell)
    assert read_cells(tmp_path, list(ladder(params.rl))) == CELLS


def test_cells_of_other_questions_and_torn_ones_are_refused(tmp_path):
    with pytest.raises(InputError, match="no cell"):
        read_cells(tmp_path, ["naive"])
    write_cell(tmp_path, CELLS[0])
    other = made_cell("naive", 1, (0.0, 0.5))
    write_cell(tmp_path, other)
    with pytest.raises(InputError, match="other questions"):
        read_cells(tmp_path, ["naive"])
    (tmp_path / "naive/seed1" / TRAINING).write_text('{"skipped": ')
    with pytest.raises(InputError, match="no whole cell"):
        read_cells(tmp_path, ["naive"])


def test_figures_leave_out_what_nobody_scored():
    assert figures_of(made_cell("naive", 0, (0.5, 1.0, None)).scores) == {
        "average/all": 0.75, "average/128": 0.75,
        "response_tokens": 10.0, "truncated_share": 0.25, "unscored_share": 0.0,
    }  # fmt: skip


def test_every_variant_is_compared_with_its_predecessor_then_with_the_start_and_nothing_twice(params):
    pairs = compared(ladder(params.rl))
    assert pairs[:2] == [("balanced", "naive"), ("domain", "balanced")]
    assert len(pairs) == len(set(pairs)) == 15
    assert ("recipe", "sequence_high") in pairs
    assert ("recipe", "naive") in pairs


def test_the_tables_by_hand(params):
    """Naive: 62.5 and 12.5; balanced: 75 and, its unscored question left out, 100."""
    results = results_of(CELLS, ladder(params.rl), 500, seed=0)
    page = markdown_page(results, samples=4)
    assert (
        "| naive GRPO | 37.5 ± 35.4 (62.5, 12.5) | 25.0 ± 0.0 (25.0, 25.0) | 50.0 ± 70.7 (100.0, 0.0) | 10.0 |" in page
    )
    assert "| + task-balanced batches | 87.5 ± 17.7 (75.0, 100.0) |" in page
    assert "| + task-balanced batches | naive GRPO | +25.0 (+12.5, +75.0) |" in page
    assert "| naive GRPO | 0.500 | 0.100 → 0.100 | 75 % | 100 % | 1.0 | 0.0 % |" in page
    pictures = (scores_picture(results), differences_picture(results), training_picture(CELLS, results))
    html = html_page(results, 4, pictures)
    assert html.count("<svg") == 3
    assert re.findall(r"(?:src|href)=\"(?!#)", html) == []


@pytest.mark.parametrize(
    ("gains", "said"),
    [
        ((0.25, 0.25), "better"),
        ((-0.25, -0.25), "worse"),
        ((0.05, 0.45), "these checkpoints"),
        ((0.0, 0.0), "not told apart"),
    ],
)
def test_a_verdict_needs_both_intervals(params, gains, said):
    base = [made_cell("naive", seed, (0.25, 0.5, 0.5)) for seed in (0, 1)]
    model = [
        made_cell("balanced", seed, [average + gain for average in (0.25, 0.5, 0.5)]) for seed, gain in enumerate(gains)
    ]
    (comparison,) = results_of([*base, *model], ladder(params.rl), 500, seed=0).comparisons
    assert verdict(comparison) == said


def test_one_seed_or_no_common_one_gives_a_table_all_the_same(params):
    lone = results_of([CELLS[0], CELLS[3]], ladder(params.rl), 50, seed=0)
    assert lone.comparisons[0].difference is None
    assert "| + task-balanced batches | naive GRPO | – | – | – | – |" in markdown_page(lone, 4)


# ── requests ──


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"variants": ("nope",)}, "known: naive, balanced"),
        ({"seeds": (-1,)}, "seed = -1"),
        ({"seeds": ()}, "no seed"),
        ({"overrides": ("rl.grup=3",)}, "group_size"),
        ({"parallel": 0}, "parallel"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(scratch, fields, reason):
    with pytest.raises(ValueError, match=reason):
        AblationRequest.model_validate(fields)


def test_seeds_come_one_after_the_other_and_once(scratch):
    request = AblationRequest(seeds=(3, 1, 3), variants=("domain", "naive"))
    assert request.cells() == [("naive", 3), ("domain", 3), ("naive", 1), ("domain", 1)]


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["--variant", "no"], 2), (["--parallel", "0"], 2)])
def test_help_and_refusals_come_before_prefect_is_imported(arguments, code):
    check = (
        "import runpy, sys\n"
        f"sys.argv = ['x', *{arguments!r}]\n"
        "try: runpy.run_module('flows.ablation', run_name='__main__')\n"
        f"except SystemExit as stopped: assert stopped.code == {code}, stopped.code\n"
        "assert not {'prefect', 'dvc', 'torch', 'mlflow'} & sys.modules.keys()\n"
    )
    done = subprocess.run([sys.executable, "-c", check], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ── cells as experiments, on a pipeline in miniature ──

PIPELINE = {
    "curate": {"foreach": ["stage1"], "do": {"cmd": "python work.py curate", "outs": ["data/curated/stage1.parquet"]}},
    "rl": {
        "foreach": ["stage1"],
        "do": {
            "cmd": "python work.py rl",
            "params": ["seed", "rl.batches"],
            "deps": ["data/curated/stage1.parquet"],
            "outs": ["checkpoints/stage1"],
            "metrics": [{"metrics/rl-stage1.json": {"cache": False}}],
        },
    },
    "report": {"cmd": "false", "outs": ["reports"]},
}
ADDED = {
    "ablation": {
        "cmd": "python work.py ablation",
        "params": ["seed"],
        "deps": ["checkpoints/stage1"],
        "outs": ["data/ablation.json"],
        "metrics": [{"metrics/ablation.json": {"cache": False}}],
    },
    "ablation-report": {"cmd": "python work.py report", "deps": ["cells"], "outs": ["reports"]},
}
WORK = """
import json, os, pathlib, sys, yaml
params = yaml.safe_load(open("params.yaml"))
def write(path, text):
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_text(text)
def did(what):
    with open(os.environ["DIARY"], "a") as diary:
        diary.write(f"{what} {params['rl']['batches']} {params['seed']}\\n")
did(sys.argv[1])
match sys.argv[1]:
    case "curate":
        write("data/curated/stage1.parquet", "questions")
    case "rl":
        if params["rl"]["batches"] == "balanced" and pathlib.Path(os.environ["TROUBLE"]).exists():
            sys.exit("out of luck")
        write("checkpoints/stage1/model", params["rl"]["batches"])
        write("metrics/rl-stage1.json", json.dumps({"skipped": 0, "steps": []}))
    case "ablation":
        write("data/ablation.json", json.dumps({"questions": []}))
        write("metrics/ablation.json", json.dumps({"average/all": 0.5}))
    case "report":
        write("reports/ablation.md", " ".join(sorted(str(path) for path in pathlib.Path("cells").glob("*/*"))))
"""


@pytest.fixture(scope="module")
def prefect_server() -> Iterator[None]:
    with prefect_test_harness(server_startup_timeout=120):
        yield


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git checkout with the miniature; the current folder during the test."""
    (tmp_path / "work.py").write_text(WORK, "utf-8")
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump({"stages": PIPELINE}, sort_keys=False), "utf-8")
    (tmp_path / "infra/ablation").mkdir(parents=True)
    (tmp_path / "infra/ablation/stages.yaml").write_text(yaml.safe_dump({"stages": ADDED}, sort_keys=False), "utf-8")
    shutil.copy(CHECKOUT / ".gitignore", tmp_path)
    (tmp_path / ".dvc").mkdir()
    for name in ("params.yaml", ".dvc/config", ".dvcignore"):
        shutil.copy(CHECKOUT / name, tmp_path / name)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("DIARY", str(tmp_path / "diary.txt"))
    monkeypatch.setenv("TROUBLE", str(tmp_path / "trouble"))
    (tmp_path / ".gitignore").open("a").write("/diary.txt\n/trouble\n")
    monkeypatch.setattr(flow_module, "READ", (Path("data/curated/stage1.parquet"),))
    monkeypatch.setattr(flow_module, "synthesis", lambda run: None)
    return tmp_path


def diary(checkout: Path) -> list[str]:
    return sorted((checkout / "diary.txt").read_text().splitlines())


def test_a_failed_cell_leaves_the_others_and_is_the_only_one_done_again(checkout, prefect_server):
    request = AblationRequest(seeds=(4,), variants=("naive", "balanced"))
    (checkout / "trouble").touch()
    with pytest.raises(PipelineError, match="1 cells failed \\(balanced/seed4\\)"):
        ablation(request)
    assert (checkout / "ablation/ablation.md").read_text() == "cells/naive/seed4"
    (checkout / "trouble").unlink()
    (checkout / "diary.txt").write_text("")
    ablation(request)
    assert diary(checkout) == ["ablation balanced 4", "report balanced 0", "rl balanced 4"]
    assert (checkout / "ablation/ablation.md").read_text() == "cells/balanced/seed4 cells/naive/seed4"
    start = checkout / ".work/runs" / start_name(())
    listed = subprocess.run(
        [sys.executable, "-m", "dvc", "exp", "show", "--json"], cwd=start, capture_output=True, text=True, check=True
    )
    baseline = json.loads(listed.stdout)[1]
    saved = {experiment["name"]: experiment["revs"][0]["data"] for experiment in baseline["experiments"]}
    assert saved.keys() == {"naive-seed4", "balanced-seed4"}
    figures = saved["naive-seed4"]
    assert figures["params"]["params.yaml"]["data"]["rl"]["batches"] == "uniform"
    assert figures["metrics"]["metrics/ablation.json"]["data"] == {"average/all": 0.5}
    (checkout / "diary.txt").write_text("")
    ablation(request)
    assert diary(checkout) == []


def test_a_start_is_of_its_content_and_what_a_kill_left_half_made_is_made_again(checkout):
    name = start_name(())
    (checkout / ".work/runs" / name).mkdir(parents=True)
    (checkout / ".work/runs" / name / "params.yaml").write_text("torn")
    start = open_start((), Path("infra/ablation/stages.yaml"))
    assert load_params(start.folder / "params.yaml").profile == "tiny"
    assert set(yaml.safe_load((start.folder / "dvc.yaml").read_text())["stages"]) == {"curate", "rl", *ADDED}
    (checkout / "README.md").write_text("new")
    assert start_name(()) == name
    (checkout / "params.yaml").open("a").write("# changed\n")
    assert start_name(()) != name
    assert start_name(("seed=3",)) != start_name(())
