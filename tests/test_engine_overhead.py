"""The table of benchmarks/engine_overhead.py, by hand."""

import os
import subprocess
import sys

from benchmarks.engine_overhead import Run, Span, Watch, cpu_seconds, table


def step(wall: float, rollout: float, cpu: float = 1.0, **parts: float) -> Span:
    return Span(wall, cpu, {"rollout": rollout, **parts}, reply_tokens=6.0)


WARM_UP, LAST = step(90.0, 70.0), step(80.0, 1.0)
LOCAL = Run(Span(5.0, 4.0), [WARM_UP, step(1.0, 0.5), step(3.0, 0.5), step(2.0, 0.25), LAST])
VERL = Run(Span(20.0, 12.0), [WARM_UP, step(8.0, 2.0, cpu=3.0, weights=1.0), LAST])


def rows(local: Run, verl: Run) -> dict[str, list[str]]:
    return {line[:18].strip(): line[18:].split() for line in table(local, verl).splitlines()[1:]}


def test_medians_leave_out_the_first_and_the_last_step():
    assert rows(LOCAL, VERL)["step"] == ["2.000", "8.000", "4.0×"]
    assert rows(LOCAL, VERL)["rollout"] == ["0.500", "2.000", "4.0×"]
    assert rows(LOCAL, VERL)["step, CPU"] == ["1.000", "3.000", "3.0×"]


def test_the_rest_is_what_no_part_accounts_for():
    assert rows(LOCAL, VERL)["rest"] == ["1.750", "5.000", "2.9×"]  # of 0.5, 2.5, 1.75, and 8 - 2 - 1


def test_a_part_that_one_engine_lacks_has_no_ratio():
    assert rows(LOCAL, VERL)["weights"] == ["0.000", "1.000", "–"]


def test_set_up_stands_for_itself():
    assert rows(LOCAL, VERL)["set-up"] == ["5.000", "20.000", "4.0×"]
    assert rows(LOCAL, VERL)["set-up, CPU"] == ["4.000", "12.000", "3.0×"]


def test_a_call_within_a_part_counts_once():
    watch = Watch()
    inner = watch.part("score", lambda: 7)
    assert watch.part("update", inner)() == 7
    watch.end_step({"response_length": 6.0})
    assert watch.steps[0].parts.keys() == {"update"}


def test_a_step_takes_what_the_engine_reports_and_starts_anew():
    watch = Watch()
    watch.part("advantage", lambda: None)()
    watch.end_step({"response_length": 6.0, "seconds": 9.0, "seconds/rollout": 4.0})
    watch.end_step({"response_length": 5.0, "seconds/checkpoint": 1.0})
    assert watch.steps[0].parts["rollout"] == 4.0
    assert watch.steps[0].parts.keys() == {"advantage", "rollout"}
    assert watch.steps[1].parts == {} and watch.steps[1].reply_tokens == 5.0


def test_the_set_up_ends_once():
    watch = Watch()
    watch.first_draw()
    first = watch.setup
    watch.first_draw()
    assert watch.setup is first


def test_processes_below_are_counted():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert {os.getpid(), child.pid} <= cpu_seconds().keys()
