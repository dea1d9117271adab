"""What a Ray cluster runs for one RL stage: `python -m tasks.rl.engines.verl.job CONFIG_NAME OVERRIDE…`."""

import sys
from collections.abc import Sequence

from tasks.cli import one_line_errors

ON_CPU = "trainer.device=cpu"


def run(config_name: str, overrides: Sequence[str]) -> None:
    """Compose verl's configuration on the cluster and train there."""
    from tasks.rl.engines.verl.launch import prepare_environment, run_here

    prepare_environment("cpu" if ON_CPU in overrides else "cuda")
    from tasks.rl.engines.verl.config import compose

    run_here(compose(config_name, overrides), address="auto")


def main() -> None:
    """The command."""
    with one_line_errors():
        config_name, *overrides = sys.argv[1:]
        run(config_name, overrides)


if __name__ == "__main__":
    main()
