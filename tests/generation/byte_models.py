"""Small random models over bytes, so that they could write anything: as HF folders, and as a GGUF file."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tasks.tokenization import ChatTokenizer

MARKERS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
START_ID, END_ID = 1, 2
MERGES = [("a", "b"), ("c", "d")]
TOKENS = [*MARKERS, *BYTES, *map("".join, MERGES)]


def byte_tokenizer() -> ChatTokenizer:
    """Three markers, one token a byte, and two of two."""
    core = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(TOKENS)}, merges=MERGES))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(MARKERS)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = TEMPLATE
    return ChatTokenizer(tokenizer)


def byte_model(vocabulary: int = 272, **changes: Any) -> LlamaForCausalLM:
    """Random weights; more rows of logits than there are tokens, as many real models have."""
    torch.manual_seed(0)
    sizes = {
        "vocab_size": vocabulary, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 512, "eos_token_id": END_ID,
        "pad_token_id": 0, "bos_token_id": START_ID, "tie_word_embeddings": True, "initializer_range": 0.2,
    }  # fmt: skip
    return LlamaForCausalLM(LlamaConfig(**{**sizes, **changes})).eval()


def write_folder(folder: Path, model: Any = None) -> Path:
    (model or byte_model()).save_pretrained(folder)
    byte_tokenizer().save(folder)
    return folder


def write_gguf(path: Path, model: LlamaForCausalLM) -> Path:
    """As llama.cpp's converter does it for a model of the kind of SmolLM2."""
    import gguf

    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] * len(MARKERS) + [1] * (len(TOKENS) - len(MARKERS)))
    writer.add_token_merges([" ".join(pair) for pair in MERGES])
    writer.add_bos_token_id(START_ID)
    writer.add_eos_token_id(END_ID)
    writer.add_pad_token_id(0)
    writer.add_chat_template(TEMPLATE)
    for name, tensor in model.state_dict().items():
        if (place := _gguf_name(name)) is not None:
            writer.add_tensor(place, _permuted(name, tensor, config).contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _gguf_name(name: str) -> str | None:
    fixed = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    parts = {
        "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    }  # fmt: skip
    if name in fixed:
        return fixed[name]
    if not name.startswith("model.layers."):
        return None
    _, _, layer, *part, weight = name.split(".")
    return f"blk.{layer}.{parts['.'.join(part)]}.{weight}"


def _permuted(name: str, tensor: torch.Tensor, config: LlamaConfig) -> torch.Tensor:
    """GGUF keeps the two halves of a rotary pair side by side."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for part, number in heads.items():
        if part in name:
            rows, columns = tensor.shape
            return tensor.view(number, 2, rows // number // 2, columns).swapaxes(1, 2).reshape(rows, columns)
    return tensor
