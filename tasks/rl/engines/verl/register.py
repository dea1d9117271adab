"""Imported by every process of verl's, through VERL_USE_EXTERNAL_MODULES: trainer, loss, agent loops, CPU."""

import importlib
import os

ON_CPU = ("cpu", "rollout") if os.environ.get("VERL_PLATFORM") == "cpu" else ()  # the platform first of all

for name in (*ON_CPU, "agent", "trainer"):
    importlib.import_module(f"tasks.rl.engines.verl.{name}")  # each registers itself; an error ends the process

# Where TRL is installed, verl 0.9.1 imports a class for critics that TRL 1.16 no longer has. We have no critic.
importlib.import_module("verl.models.transformers.monkey_patch").__dict__["is_trl_available"] = lambda: False
