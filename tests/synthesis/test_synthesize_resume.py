"""A synthesis that is killed and started again: the model is not asked twice for what it answered."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from tasks.artifacts import read_questions, write_documents
from tasks.generation.base import Sampling
from tasks.generation.chat import Request
from tasks.synthesis import synthesize as stage
from tasks.synthesis.extraction import StatedFacts
from tests.conftest import CHECKOUT
from tests.generation.server import Answer, completion, serving

from .writers import HonestWriter, companies, told

AT_A_TIME = 4
KILLED_AFTER = 30  # answers
FEW = ("synthesis.questions_per_domain=12", "synthesis.test_questions_per_domain=1")


def test_a_killed_synthesis_asks_nothing_twice(scratch: Path) -> None:
    facts = companies(24)
    write_documents(stage.DOCUMENTS, told(facts))
    honest, lock, enough = HonestWriter(facts), threading.Lock(), threading.Event()
    answered: Counter[str] = Counter()

    def script(number: int, body: dict[str, Any]) -> Answer:
        prompt = body["messages"][0]["content"]
        name = body["response_format"]["json_schema"]["name"]
        reply = honest(Request(prompt, Sampling(0.0, 1.0, 512), schema=StatedFacts if name == "StatedFacts" else None))
        with lock:
            answered[prompt] += 1
            if len(answered) == KILLED_AFTER:
                enough.set()
        return completion(reply)

    with serving(script) as server:
        command = [sys.executable, "-m", stage.__name__, "knowledge_graph", *settings(scratch, server.url)]
        environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
        process = subprocess.Popen(command, cwd=scratch, env=environment, stdout=subprocess.DEVNULL)
        assert enough.wait(60)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not (stage.SYNTHESIZED / "knowledge_graph.parquet").exists()
        before = len(server.prompts)
        subprocess.run(command, cwd=scratch, env=environment, check=True, capture_output=True, timeout=120)
    asked = Counter(server.prompts)
    twice = sum(number > 1 for number in asked.values())
    assert twice <= AT_A_TIME and max(asked.values()) <= 2, "only what was under way when it was killed"
    assert len(server.prompts) == len(asked) + twice > before
    writer = json.loads((stage.METRICS / "synthesize-knowledge_graph.json").read_text())["writer"]
    assert writer["asked"] == len(server.prompts) - before
    assert writer["remembered"] >= before - AT_A_TIME
    assert read_questions(stage.SYNTHESIZED / "knowledge_graph.parquet")


def settings(folder: Path, url: str) -> list[str]:
    writer = {
        "type": "openai", "base_url": url, "model": "honest", "key_variable": "NO_KEY", "context_tokens": 8192,
        "max_output_tokens": 1024, "concurrency": AT_A_TIME, "attempts": 2, "timeout_seconds": 30.0,
        "input_price": 0.0, "output_price": 0.0, "budget": None,
    }  # fmt: skip
    values = (*FEW, f"synthesis.writer={json.dumps(writer)}", f"base_model={CHECKOUT}/models/tiny-base")
    return [part for value in (*values, f"tracking.uri=sqlite:///{folder}/runs.db") for part in ("--set", value)]
