"""A tiny random model, tokenizer and items for tests, and a short RL stage over them."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from tasks.artifacts import stage_lock, write_items
from tasks.params import Params, load_params
from tasks.records import AnswerKind, Domain, Item, Question
from tasks.rl.train import data_of, read_training_items, train_stage
from tasks.tokenization import ChatTokenizer
from tasks.tracking import Tracker

WORDS = [
    "The",
    "answer",
    "is",
    "red",
    "green",
    "blue",
    "Question",
    "Document",
    ":",
    ".",
    "?",
    "what",
    "1",
    "2",
]
SPECIAL = ["<pad>", "<end>", "<unk>", "<user>", "<assistant>"]
TEMPLATE = "<user>{{ messages[0]['content'] }}<assistant>"


def tiny_tokenizer() -> ChatTokenizer:
    """A closed word vocabulary; pad 0, end 1."""
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *WORDS])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<end>", unk_token="<unk>",
        additional_special_tokens=["<user>", "<assistant>"],
    )  # fmt: skip
    fast.chat_template = TEMPLATE
    return ChatTokenizer(fast)


def tiny_model(seed: int = 0, kv_heads: int = 2, vocabulary: int = 60, experts: int = 0) -> torch.nn.Module:
    """Two layers, hidden 32, random weights large enough that attention matters."""
    torch.manual_seed(seed)
    sizes = {
        "vocab_size": vocabulary, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": kv_heads, "head_dim": 16, "initializer_range": 0.3,
        "max_position_embeddings": 256, "tie_word_embeddings": True, "pad_token_id": 0, "eos_token_id": 1,
        "bos_token_id": None,
    }  # fmt: skip
    if experts:
        config = Qwen3MoeConfig(
            **sizes, num_experts=experts, num_experts_per_tok=2, moe_intermediate_size=24, norm_topk_prob=True
        )
        return Qwen3MoeForCausalLM(config).eval()
    return Qwen3ForCausalLM(Qwen3Config(**sizes)).eval()


def tiny_items(count: int = 8) -> list[Item]:
    """Questions of two domains that a random model sometimes gets right."""
    domains = (Domain.MULTI_HOP, Domain.READING_COMPREHENSION)
    return [
        Item(
            question=Question(
                id=f"q{number}", domain=domains[number % 2], question="what is red ?",
                gold=(("red", "green", "blue")[number % 3],), answer_kind=AnswerKind.TEXT,
                document_ids=("d1",), split="train", generator="knowledge_graph", difficulty=1, provenance={},
                seed=number,
            ),
            documents=("red is green ." * (1 + number % 3),), document_ids=("d1",), length_bucket=64,
            input_tokens=20,
        )
        for number in range(count)
    ]  # fmt: skip


def tiny_params(*overrides: str) -> Params:
    """The shipped profile, shrunk to a few short steps."""
    shrunk = (
        "base_model=base", "rl.batch_prompts=4", "rl.group_size=4", "rl.checkpoint_every=2",
        "rl.learning_rate=0.003", "rl.warmup_steps=2", "rl.sampling.temperature=1.0",
        "rl.entropy_control={low: 0.6, high: 0.8}",
        "rl.domain_weights={multi_hop: 1.0, reading_comprehension: 1.0}",
        "rl.stages.stage1={max_input_tokens: 64, max_output_tokens: 6, steps: 5, questions: 8}",
    )  # fmt: skip
    return load_params(Path(__file__).parents[2] / "params.yaml", (*shrunk, *overrides))


def guessing_model(tokenizer: ChatTokenizer, says: str = "{}") -> torch.nn.Module:
    """A model taught to end after one random colour, so that some of its answers are right."""
    model = tiny_model(vocabulary=len(SPECIAL) + len(WORDS))
    prompt = tokenizer.prompt_ids("what is red ?")
    replies = [[*tokenizer.encode(says.format(colour)), tokenizer.end_id] for colour in ("red", "green", "blue")]
    tokens = torch.tensor([prompt + reply for reply in replies])
    labels = tokens.clone()
    labels[:, : len(prompt)] = -100
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20):
        optimiser.zero_grad()
        model(input_ids=tokens, labels=labels).loss.backward()
        optimiser.step()
    return model


def write_world(folder: Path) -> None:
    """Base model and curated data below `folder`, as stage 1 expects them."""
    tokenizer = tiny_tokenizer()
    guessing_model(tokenizer).save_pretrained(folder / "base")
    tokenizer.save(folder / "base")
    write_items(folder / data_of("stage1"), tiny_items())


def run_stage1(tracker: Tracker, *overrides: str) -> None:
    """Stage 1 in the current folder, as the command runs it but for MLflow."""
    with stage_lock("rl-stage1") as work:
        train_stage("stage1", tiny_params(*overrides), read_training_items("stage1"), work, tracker)
