"""vLLM inside this process, on CPU: `make test-vllm`, in an environment of its own."""

from importlib.util import find_spec

import pytest
from pydantic import BaseModel, Field

from tasks.errors import InputError
from tasks.generation.base import Sampling
from tasks.generation.chat import Request
from tasks.generation.local import LocalGenerator
from tasks.generation.offline import OfflineChat, TokenRequest
from tasks.generation.structured import ask
from tasks.generation.vllm import VllmGenerator
from tasks.records import Finish
from tasks.tokenization import ChatTokenizer
from tests.conftest import CHECKOUT
from tests.generation.byte_models import byte_model, byte_tokenizer, write_folder

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="needs an environment of its own: make test-vllm"),
]
FOLDER = CHECKOUT / "models/tiny-base"


class Colour(BaseModel):
    name: str = Field(max_length=5)
    shade: int = Field(ge=0, le=9)
    warm: bool


@pytest.fixture(scope="module", autouse=True)
def _small_and_quiet():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
        patch.setenv("VLLM_CPU_OMP_THREADS_BIND", "nobind")
        yield


@pytest.fixture(scope="module")
def tiny() -> VllmGenerator:
    return VllmGenerator.load(FOLDER, 512)


@pytest.fixture(scope="module")
def prompts() -> list[list[int]]:
    tokenizer = ChatTokenizer.load(FOLDER)
    return [tokenizer.prompt_ids(text) for text in ("The capital of Chad is", "Chad", "What is the capital of Chad?")]


def test_greedy_equals_our_own_sampler(tiny, prompts):
    sampling = Sampling(0.0, 1.0, 12)
    assert tiny.generate(prompts, sampling, 0) == LocalGenerator.load(FOLDER).generate(prompts, sampling, 0)


def test_seeds_decide_and_batches_do_not(tiny, prompts):
    sampling = Sampling(1.5, 1.0, 8, samples=3)
    first = tiny.generate(prompts, sampling, 1)
    assert first == tiny.generate(prompts, sampling, 1)
    assert first != tiny.generate(prompts, sampling, 2)
    requests = [TokenRequest(tuple(prompt), Sampling(1.5, 1.0, 8), 5) for prompt in prompts]
    assert tiny.sample(requests) == [tiny.sample([request])[0] for request in requests]
    assert tiny.generate([], sampling, 1) == []


def test_prompts_that_cannot_be_sampled_are_refused(tiny):
    with pytest.raises(InputError, match="512 positions"):
        tiny.generate([[5] * 505], Sampling(1.0, 1.0, 10), 0)
    with pytest.raises(InputError, match="empty"):
        tiny.generate([[]], Sampling(1.0, 1.0, 10), 0)


def test_a_random_model_writes_what_the_schema_says(tmp_path_factory):
    folder = write_folder(tmp_path_factory.mktemp("bytes"), byte_model(hidden_size=128))
    generator = VllmGenerator.load(folder, 400)
    chat = OfflineChat(generator, byte_tokenizer(), 400, 120, 4)
    asked = [Request(f"colour {n}", Sampling(1.0, 1.0, 120), n) for n in range(6)]
    records = list(ask(chat, asked, Colour))
    assert all(isinstance(record, Colour) for record in records)
    assert len({str(record) for record in records}) == 6
    [cut] = generator.sample([TokenRequest((5,), Sampling(0.0, 1.0, 5), 0, Colour)])
    assert cut.finish is Finish.TRUNCATED
