"""The learning rate by hand."""

import pytest

from tasks.rl.schedule import learning_rate
from tests.rl.tiny import tiny_params


@pytest.mark.parametrize(("warmup", "step", "rate"), [(4, 1, 0.001), (4, 3, 0.003), (4, 4, 0.004), (4, 90, 0.004)])
def test_the_rate_rises_in_equal_parts_and_stays(warmup, step, rate):
    params = tiny_params("rl.learning_rate=0.004", f"rl.warmup_steps={warmup}").rl
    assert learning_rate(step, params) == pytest.approx(rate)


def test_without_warm_up_the_first_step_has_the_whole_rate():
    assert learning_rate(1, tiny_params("rl.learning_rate=0.004", "rl.warmup_steps=0").rl) == 0.004
