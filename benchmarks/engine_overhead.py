"""What verl's machinery costs: an RL step of the verl engine on CPU beside one of the local engine.

`PYTHONPATH=. python benchmarks/engine_overhead.py` trains stage 1 from models/tiny-base once with each engine, as
`python -m tasks.rl.train` does, in a process of its own; every step draws the same questions in both. Printed: medians
over steps, without the first (warm-up) and the last (in which verl saves its checkpoint).

* Wall seconds from one step's report to the next. verl's parts are its own timers, as they appear in MLflow; the local
  engine's are its calls, timed from outside. The rest is drawing, reports, and in verl moving data between processes.
* CPU-seconds of the process and all below it (Ray's among them) that are alive at the end of the span.
* Set-up: from the start of the process to the first draw, imports and Ray included. The MLflow store is there before.

Not like for like, and meant to be seen. On CPU, verl's rollout answers request by request and is asked every 0.2 s
whether all is there; the local engine decodes a batch. verl computes each row's prompt anew, in rollout, score and
update; the local engine computes it once for all samples of a question. verl scores in a pass of its own; the local
update goes back through the pass that scored, so its forward half counts as score. Each engine samples with seeds of
its own, so replies differ; their mean length is printed. Nothing here speaks of GPUs, where rollout and model are
others. Needs the extra `verl`.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[1]
STAGE = "stage1"
LENGTH = 128  # tokens of a question with its context
ENGINES = ("local", "verl")
PARTS = ("rollout", "score", "advantage", "update", "weights")
RESULT = "measured.json"
LIMIT_SECONDS = 900


@dataclass(frozen=True)
class Span:
    """A stretch of one run: wall and CPU-seconds; of a step also the wall seconds of its parts."""

    wall: float
    cpu: float
    parts: Mapping[str, float] = field(default_factory=dict)
    reply_tokens: float = 0.0

    @property
    def rest(self) -> float:
        """What no part accounts for."""
        return self.wall - sum(self.parts.values())


@dataclass(frozen=True)
class Run:
    """One engine's run."""

    setup: Span
    steps: Sequence[Span]

    def median(self, value: Callable[[Span], float]) -> float:
        """Over the steps between the first and the last."""
        return statistics.median(value(step) for step in self.steps[1:-1])


class Watch:
    """Measures a run from inside its process. To look at all processes takes a while, which counts for no span."""

    def __init__(self) -> None:
        self.setup: Span | None = None
        self.steps: list[Span] = []
        self._parts: dict[str, float] = {}
        self._inside = False
        self._begun = psutil.Process().create_time()
        self._cpu: dict[int, float] = {}

    def first_draw(self) -> None:
        """The set-up ends here."""
        if self.setup is None:
            self.setup = self._cut({}, 0.0)

    def end_step(self, figures: Mapping[str, float]) -> None:
        """What the engine reports of its parts goes before what was timed from outside."""
        reported = {part: figures[f"seconds/{part}"] for part in PARTS if f"seconds/{part}" in figures}
        self.steps.append(self._cut({**self._parts, **reported}, figures["response_length"]))
        self._parts = {}

    def part(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, its wall time counted under a part unless it runs within another part."""

        def timed(*arguments: Any, **options: Any) -> Any:
            if self._inside:
                return call(*arguments, **options)
            self._inside, begun = True, time.time()
            try:
                return call(*arguments, **options)
            finally:
                self._inside = False
                self._parts[name] = self._parts.get(name, 0.0) + time.time() - begun

        return timed

    def _cut(self, parts: Mapping[str, float], reply_tokens: float) -> Span:
        wall, cpu = time.time() - self._begun, cpu_seconds()
        used = sum(seconds - self._cpu.get(pid, 0.0) for pid, seconds in cpu.items())
        self._begun, self._cpu = time.time(), cpu
        return Span(wall, used, parts, reply_tokens)


def cpu_seconds() -> dict[int, float]:
    """User and system time so far of this process and of every one below it, by process id."""
    own = psutil.Process()
    found: dict[int, float] = {}
    for process in (own, *own.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        found[process.pid] = times.user + times.system
    return found


def measure(engine: str, settings: Sequence[str]) -> None:
    """Train in the current folder, watched, and leave the figures there. Runs in a process of its own."""
    from tasks.params import load_params
    from tasks.rl import train

    watch = Watch()
    watch_steps(watch)
    if engine == "local":
        watch_local_engine(watch)
    train.train(STAGE, load_params(Path("params.yaml"), tuple(settings)))
    if watch.setup is None:
        raise RuntimeError("no step was drawn; the sampler is no longer where this benchmark looks for it")
    Path(RESULT).write_text(json.dumps(asdict(Run(watch.setup, watch.steps))), "utf-8")


def watch_steps(watch: Watch) -> None:
    """Both engines draw with one sampler and report to one tracker, in this process."""
    from tasks.rl.sampling import DomainSampler
    from tasks.tracking import MlflowTracker

    draw, report = DomainSampler.next_batch, MlflowTracker.log_metrics

    def next_batch(sampler: DomainSampler) -> Any:
        watch.first_draw()
        return draw(sampler)

    def log_metrics(tracker: MlflowTracker, metrics: Mapping[str, float], step: int) -> None:
        report(tracker, metrics, step)
        watch.end_step(metrics)

    replace(DomainSampler, "next_batch", next_batch)
    replace(MlflowTracker, "log_metrics", log_metrics)


def watch_local_engine(watch: Watch) -> None:
    """Time the local engine's calls."""
    from tasks.rl import train
    from tasks.rl.engines import local

    make = train.make_rollout
    replace(train, "make_rollout", lambda *arguments: watch.part("rollout", make(*arguments)))
    for owner, name, part in (
        (local.LocalEngine, "_score_all", "score"),
        (local, "collate", "advantage"),
        (local, "select", "advantage"),
        (local.LocalEngine, "_backward", "update"),
        (local.LocalEngine, "_recompute", "update"),
        (local.LocalEngine, "_step", "update"),
    ):
        replace(owner, name, watch.part(part, getattr(owner, name)))


def replace(owner: Any, name: str, call: Callable[..., Any]) -> None:
    """Put `call` where product code looks `name` up."""
    setattr(owner, name, call)


def run(engine: str, folder: Path, options: argparse.Namespace) -> Run:
    """Train with one engine in a checkout of its own."""
    folder.mkdir()
    make_checkout(folder, 3 * options.prompts)
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", engine]
    sizes = ["--prompts", str(options.prompts), "--group", str(options.group), "--steps", str(options.steps)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    log = folder / "log"
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(
            [*command, *sizes],
            check=False,  # the log's end says more than the command line
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            timeout=LIMIT_SECONDS,
        )
    if done.returncode:
        raise SystemExit(f"{engine} failed:\n{log.read_text('utf-8')[-4000:]}")
    measured = json.loads((folder / RESULT).read_text("utf-8"))
    return Run(Span(**measured["setup"]), [Span(**step) for step in measured["steps"]])


def make_checkout(folder: Path, questions: int) -> None:
    """Parameters, base model and questions as a stage finds them, and an empty MLflow store."""
    from mlflow import MlflowClient

    from tasks.artifacts import write_items
    from tests.verl.items import world_items

    (folder / "params.yaml").write_bytes((ROOT / "infra/profiles/tiny.yaml").read_bytes())
    (folder / "models").symlink_to(ROOT / "models")
    items = world_items(ROOT / "models/tiny-base", length=LENGTH, count=questions)
    short = [item for item in items if item.input_tokens <= LENGTH]  # a few are drawn a token too long
    write_items(folder / f"data/curated/{STAGE}.parquet", short)
    MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db").search_experiments()


def settings_of(engine: str, options: argparse.Namespace) -> list[str]:
    """The tiny profile with the asked sizes; no resume point within the run."""
    steps = options.steps + 2
    return [
        f"rl.engine={engine}",
        f"rl.batch_prompts={options.prompts}",
        f"rl.group_size={options.group}",
        f"rl.stages.{STAGE}.steps={steps}",
        f"rl.checkpoint_every={steps}",
    ]


def table(local: Run, verl: Run) -> str:
    """Medians of both side by side."""
    rows: list[tuple[str, Callable[[Span], float]]] = [(part, _part(part)) for part in PARTS]
    rows += [("rest", lambda step: step.rest), ("step", lambda step: step.wall), ("step, CPU", lambda step: step.cpu)]
    lines = [f"{'seconds':<18}{'local':>9}{'verl':>9}{'ratio':>9}"]
    lines += [_line(name, local.median(value), verl.median(value)) for name, value in rows]
    lines += [_line("set-up", local.setup.wall, verl.setup.wall), _line("set-up, CPU", local.setup.cpu, verl.setup.cpu)]
    lengths = [engine.median(lambda step: step.reply_tokens) for engine in (local, verl)]
    return "\n".join([*lines, f"{'tokens a reply':<18}{lengths[0]:9.1f}{lengths[1]:9.1f}"])


def _part(name: str) -> Callable[[Span], float]:
    return lambda step: step.parts.get(name, 0.0)


def _line(name: str, local: float, verl: float) -> str:
    ratio = f"{verl / local:8.1f}×" if local > 0 else f"{'–':>9}"
    return f"{name:<18}{local:9.3f}{verl:9.3f}{ratio}"


def positive(text: str) -> int:
    """An argument of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def main() -> None:
    """Run both and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=positive, default=15, help="prompts a step, the tiny profile's (15)")
    parser.add_argument("--group", type=positive, default=8, help="samples a prompt, G (8)")
    parser.add_argument("--steps", type=positive, default=4, help="measured steps; two more are run (4)")
    parser.add_argument("--measure", choices=ENGINES, help=argparse.SUPPRESS)  # in the process of one engine
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, settings_of(options.measure, options))
        return
    if importlib.util.find_spec("verl") is None:
        parser.error("needs the verl extra: pip install 'posttrain-flows[verl]'")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")  # counts only before MLflow's first import
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        local, verl = (run(engine, Path(folder) / engine, options) for engine in ENGINES)
    sizes = f"{options.prompts} prompts × {options.group} samples, contexts of up to {LENGTH} tokens"
    print(f"{sizes}; medians of {options.steps} steps")
    print(table(local, verl))


if __name__ == "__main__":
    main()
