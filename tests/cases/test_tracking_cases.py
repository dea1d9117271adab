"""More inputs of the kind OP-03: what MLflow would cut, refuse or store wrongly."""

import math

import pytest

from tasks.tracking import LONGEST_NAME, NullTracker, safe_name, safe_names, split_finite


@pytest.mark.parametrize(
    ("metrics", "finite", "dropped"),
    [
        ({"a": math.inf, "b": -math.inf, "c": 1e308}, {"c": 1e308}, 2),
        ({"loss": math.nan}, {}, 1),
        ({"n": 3, "flag": True}, {"n": 3.0, "flag": 1.0}, 0),
        ({}, {}, 0),
    ],
)
def test_op03_only_finite_values_are_written(metrics: dict[str, float], finite: dict[str, float], dropped: int) -> None:
    assert split_finite(metrics) == (finite, dropped)
    tracker = NullTracker()
    tracker.log_metrics(metrics, 1)
    assert (tracker.steps, tracker.non_finite) == ([(1, finite)], dropped)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("accuracy@4", "accuracy_4"),
        ("Δ reward", "_ reward"),
        ("a\nb", "a_b"),
        ("..", "unnamed"),
        ("a/../b", "a/b"),
        ("reward (%)", "reward ___"),
        ("  ", "unnamed"),
    ],
)
def test_op03_any_name_is_made_acceptable(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_op03_rewritten_names_never_hide_each_other() -> None:
    names = ["a%", "a$", "a_", "x" * (LONGEST_NAME + 1), "x" * (LONGEST_NAME + 2)]
    safe = safe_names(dict.fromkeys(names))
    assert len(set(safe.values())) == len(names)
    assert all(len(name) <= LONGEST_NAME for name in safe.values())


def test_op03_a_parameter_keeps_its_first_value() -> None:
    tracker = NullTracker()
    tracker.log_params({"lr": 1e-6})
    tracker.log_params({"lr": 2e-6, "seed": 0})
    assert tracker.params == {"lr": 1e-6, "seed": 0}
