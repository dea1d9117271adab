import pytest

from tasks.base_model.vocabulary import build_tokenizer
from tasks.corpus.countries import load_countries
from tasks.tokenization import ChatTokenizer


@pytest.fixture(scope="session")
def tokenizer() -> ChatTokenizer:
    """The tiny profile's tokenizer; it needs no trained model."""
    return ChatTokenizer(build_tokenizer(load_countries()))
