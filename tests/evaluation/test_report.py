"""The report from made-up metrics of a whole run."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tasks.artifacts import write_bytes, write_items, write_json
from tasks.errors import InputError
from tasks.evaluation import report as stage
from tasks.evaluation import tables
from tasks.evaluation.charts import running_mean
from tasks.evaluation.files import METRICS, PICTURE, REPLIES, TEST_ITEMS, write_replies
from tasks.evaluation.pages import excerpt, html_page, markdown_page, markdown_text
from tasks.evaluation.scores import (
    Cell,
    CheckpointScores,
    Evaluation,
    Interval,
    LongScores,
    Provenance,
    Reply,
)
from tasks.evaluation.sources import Curves, choose_examples, read_sources
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
        average=average,
        pass_at_k=average,
        gain=gain,
    )


def scores(checkpoint: str, average: float | None, gain: Interval | None) -> CheckpointScores:
    keys = [(domain, tokens) for domain in (None, *Domain) for tokens in (None, 128, 512)]
    return CheckpointScores(
        checkpoint=checkpoint,
        cells=tuple(cell(domain, tokens, average, gain) for domain, tokens in keys),
        response_tokens=12.34,
        truncated_share=0.125,
        unextractable_share=0.0,
        unscored_share=0.5,
        cut_share=0.0,
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


@pytest.fixture
def checkout(scratch: Path, evaluation: Evaluation, item: ItemFactory, monkeypatch: pytest.MonkeyPatch) -> NullTracker:
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
    tracker = NullTracker()

    @contextmanager
    def stage_run(*_: object) -> Iterator[NullTracker]:
        yield tracker

    monkeypatch.setattr(stage, "stage_run", stage_run)
    return tracker


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


def test_other_tables(checkout: NullTracker, evaluation: Evaluation) -> None:
    sources = read_sources()
    assert plain(tables.replies(evaluation))[0] == [
        "base", "50.0", "50.0", "50.0", "12.3", "12.5 %", "0.0 %", "50.0 %", "0.0 %",
    ]  # fmt: skip
    assert plain(tables.long_documents(evaluation)) == [
        ["stage4", "1024 tokens (8 × the window)", "4", "75.0 (+25.0 [−1.2, 50.0])", "50.0", "10.0", "50.0 %"]
    ]
    training = tables.training_funnel(sources.funnel, sources.balance)
    assert training.header == (
        "after", "dropped", "remain", "knowledge graph", "self play", "multi hop", "dialogue memory",
    )  # fmt: skip
    assert plain(training) == [
        ["synthesised", "", "13", "10", "3", "10", "3"],
        ["near duplicate", "−3", "10", "7", "3", "7", "3"],
        ["never right on extended context", "−1", "9", "7", "2", "7", "2"],
        ["balanced", "−5", "4", "4", "0", "4", "0"],
    ]
    assert plain(tables.funnel(sources.funnel, "test")) == [
        ["synthesised", "", "3", "3", "3"],
        ["answered without documents", "−3", "0", "0", "0"],
    ]
    assert plain(tables.funnel(sources.funnel, "development")) == [["synthesised", "", "0"]]
    assert plain(tables.balance(sources.balance)) == [["multi hop", "5 → 2", "2 → 2", "4 of 7"]]
    assert plain(tables.merge_weights(sources.merge)) == [
        ["stage3", "0.800", "0.500"],
        ["memory", "0.200", "0.500"],
    ]
    assert [row[1].value for row in tables.training(sources.curves).rows] == ["3", "4", "5", "6", "7"]
    assert plain(tables.training(sources.curves))[0][-1] == "2 of 3"


def test_headlines(evaluation: Evaluation) -> None:
    assert [value for _, value, _ in tables.headlines(evaluation)] == ["+25.0 [−1.2, 50.0]"] * 3
    assert len(tables.headlines(evaluation.model_copy(update={"long": ()}))) == 2


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
    assert tables.sparkline(values) == expected


def test_curve_without_any_value() -> None:
    steps = [{**step, "reward": None} for step in curve(2)["steps"]]
    row = tables.training({"x": Curves.model_validate({"steps": steps})}).rows[0]
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


def test_stage(checkout: NullTracker, params: Params, capsys: pytest.CaptureFixture[str]) -> None:
    stage.run(params)
    assert checkout.artifacts == [stage.HTML, stage.MARKDOWN]
    assert (stage.MARKDOWN.parent / "questions.png").read_bytes() == PNG
    shown = capsys.readouterr().out
    assert "+25.0 [−1.2, 50.0]" in shown
    assert f"mlflow ui --backend-store-uri {params.tracking.uri}" in shown
    assert str(stage.HTML) in shown


def test_html_is_whole_self_contained_and_escapes_foreign_text(checkout: NullTracker, params: Params) -> None:
    page = html_page(read_sources(), params)
    assert page.count("<svg") == page.count("</svg>") == 4
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "gate on above" in page
    assert "4096 tokens" in page
    assert page.count("data:image/png;base64,iVBORyBwaWN0dXJl") == 1
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)|url\((?!#)|@import""", page.replace("xlink:", ""))


def test_markdown_escapes_foreign_text(checkout: NullTracker, params: Params) -> None:
    page = markdown_page(read_sources(), params)
    assert "<script>" not in page
    assert "[x](http" not in page
    assert "![All questions by domain, kept and dropped](questions.png)" in page
    widths = {line.count(" | ") for line in page.splitlines() if line.startswith("| stage4 | 75")}
    assert widths == {3, 5, 8}


def test_the_same_metrics_give_the_same_bytes(checkout: NullTracker, params: Params) -> None:
    assert html_page(read_sources(), params) == html_page(read_sources(), params)
    assert markdown_page(read_sources(), params) == markdown_page(read_sources(), params)


def test_without_entropy_control_or_long_documents(
    checkout: NullTracker, params: Params, evaluation: Evaluation
) -> None:
    write_json(METRICS, evaluation.model_copy(update={"long": ()}))
    rl = params.rl.model_copy(update={"entropy_control": None})
    page = html_page(read_sources(), params.model_copy(update={"rl": rl}))
    assert page.count("<svg") == 3
    assert "gate on above" not in page


@pytest.mark.parametrize("name", ["evaluation", "rl-stage2", "merge", "verify", "balance"])
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
