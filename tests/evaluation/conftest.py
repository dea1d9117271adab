"""A word tokenizer, a tiny random model that speaks it, and held-out items about names."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from tasks.records import AnswerKind, Domain, Item, Question
from tasks.tokenization import ChatTokenizer

WORDS = [
    "<pad>",
    "<end>",
    "<start>",
    "<unknown>",
    *(f"w{number}" for number in range(40)),
    "Document",
    "Question",
]
TEMPLATE = "{% for message in messages %}<start>{{ message.content }}{% endfor %}<end>"


def fast_tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unknown>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<end>",
        pad_token="<pad>",
        additional_special_tokens=["<start>"],
        chat_template=TEMPLATE,
    )


@pytest.fixture
def tokenizer() -> ChatTokenizer:
    return ChatTokenizer(fast_tokenizer())


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(WORDS),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=16,
        tie_word_embeddings=True,
        eos_token_id=1,
        pad_token_id=0,
    )
    folder = tmp_path / "model"
    Qwen3ForCausalLM(config).save_pretrained(folder)
    fast_tokenizer().save_pretrained(folder)
    return folder


ItemFactory = Callable[..., Item]


@pytest.fixture
def item() -> ItemFactory:
    def make(
        name: str = "q",
        domain: Domain = Domain.READING_COMPREHENSION,
        tokens: int = 128,
        gold: str = "w1",
        documents: tuple[str, ...] = ("w1 w2", "w3 w4"),
        evidence: tuple[str, ...] = ("d0",),
        options: tuple[str, ...] = (),
    ) -> Item:
        question = Question(
            id=name,
            domain=domain,
            question=f"Which is {name} ?",
            gold=(gold,),
            answer_kind=AnswerKind.LETTER if options else AnswerKind.TEXT,
            options=options,
            document_ids=evidence,
            split="test",
            generator="tables",
            difficulty=1,
            provenance={"facts": []},
            seed=0,
        )
        return Item(
            question=question,
            documents=documents,
            document_ids=tuple(f"d{number}" for number in range(len(documents))),
            length_bucket=tokens,
            input_tokens=tokens,
        )

    return make
