"""A stage that asks an endpoint through the journal; killed by the test: python journal_run.py URL FOLDER REQUESTS"""

import sys
from pathlib import Path

from tasks.generation.base import Sampling
from tasks.generation.chat import Reply, Request
from tasks.generation.journal import Remembered
from tasks.generation.ledger import Ledger
from tasks.generation.openai import EndpointChat
from tests.generation.server import writer


def main(url: str, folder: Path, number: int) -> None:
    model = EndpointChat(writer(url), Ledger(folder / "spending.sqlite", 1.0, 2.0, None))
    remembered = Remembered(model, folder / "replies.sqlite", "m")
    requests = (Request(f"p{n}", Sampling(0.0, 1.0, 20)) for n in range(number))
    for reply in remembered.complete(requests):
        print(reply.text if isinstance(reply, Reply) else reply, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
