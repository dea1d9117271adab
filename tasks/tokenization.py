"""Chat prompts as token ids, with control tokens inside documents kept as plain text."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.errors import CheckpointError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

GGUF = ".gguf"
_PLACE = "7CONTENTx7"  # stands for the content while the template is rendered


class ChatTokenizer:
    """A model's tokenizer and chat template; text from outside can never become a control token."""

    def __init__(self, tokenizer: "PreTrainedTokenizerFast") -> None:
        head, place, tail = _render(tokenizer).partition(_PLACE)
        if not place:
            raise CheckpointError("the chat template drops the user's content; use a template that renders it")
        self._tokenizer = tokenizer
        self._plain = _without_control_tokens(tokenizer)
        self._head: list[int] = tokenizer.encode(head, add_special_tokens=False)
        self._tail: list[int] = tokenizer.encode(tail, add_special_tokens=False)
        self.end_id = _known_id(tokenizer.eos_token_id, "eos_token")
        self.pad_id = _known_id(tokenizer.pad_token_id, "pad_token")

    @classmethod
    def load(cls, path: Path) -> "ChatTokenizer":
        """Load from a HF folder or a GGUF file.

        Raises:
            CheckpointError: no usable tokenizer with a chat template lies there.
        """
        try:
            tokenizer = _read_gguf(path) if path.suffix == GGUF else _read_folder(path)
        except CheckpointError:
            raise
        except Exception as error:  # the Rust tokenizer raises bare Exception for a broken file
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise CheckpointError(f"{path} holds no readable tokenizer ({reason}); copy it again") from error
        from transformers import PreTrainedTokenizerFast

        if not isinstance(tokenizer, PreTrainedTokenizerFast):
            raise CheckpointError(f"{path} holds a {type(tokenizer).__name__}; a fast tokenizer is needed")
        if tokenizer.chat_template is None:
            raise CheckpointError(f"{path} has no chat template; add chat_template.jinja")
        return cls(tokenizer)

    def __len__(self) -> int:
        """Size of the vocabulary, control and added tokens included."""
        return len(self._tokenizer)

    def save(self, folder: Path) -> None:
        """Write the tokenizer with its chat template into a HF folder."""
        self._tokenizer.save_pretrained(folder)

    def to_json(self) -> str:
        """The tokenizer as tokenizer.json has it, control tokens included."""
        return str(self._tokenizer.backend_tokenizer.to_str())

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; control tokens written in it are spelled out."""
        ids: list[int] = self._plain.encode(text, add_special_tokens=False).ids
        return ids

    def encode_reply(self, text: str) -> list[int]:
        """Ids of a trusted reply, where tags such as <think> are control tokens (for supervised data only)."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def count(self, text: str) -> int:
        """Number of tokens of plain text."""
        return len(self.encode(text))

    def prompt_ids(self, content: str) -> list[int]:
        """Ids of a one-turn chat with the generation prompt at its end."""
        return self.wrap(self.encode(content))

    def wrap(self, ids: Sequence[int]) -> list[int]:
        """Ids of a one-turn chat, from those of the user's turn."""
        return [*self._head, *ids, *self._tail]

    def render(self, turns: Sequence[dict[str, str]]) -> str:
        """The template's text of a conversation, contents as they are, with the generation prompt at its end."""
        return str(self._tokenizer.apply_chat_template(list(turns), tokenize=False, add_generation_prompt=True))

    def prompt_length(self, content: str) -> int:
        """Tokens of the whole rendered prompt."""
        return len(self._head) + self.count(content) + len(self._tail)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids; thinking and memory tags stay visible, padding and end tokens do not."""
        kept = [token for token in ids if token not in (self.end_id, self.pad_id)]
        return str(self._tokenizer.decode(kept, skip_special_tokens=False)).strip()


def _read_folder(folder: Path) -> object:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder} holds no {name}; give a HF model folder with a fast tokenizer")
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def check_gguf(path: Path) -> None:
    """Refuse a GGUF file that is not there, or that nothing here can read.

    Raises:
        CheckpointError: which of the two, and what to do.
    """
    if not path.is_file():
        raise CheckpointError(f"{path} does not exist; name a .gguf file")
    if find_spec("gguf") is None:
        raise CheckpointError(f"{path} is a GGUF file and its package is missing: pip install --editable '.[gguf]'")


def _read_gguf(path: Path) -> object:
    """transformers' reading, with what it gets wrong taken from the file's own fields: it takes the start token for the
    end token, and gives byte-level tokens (the kind that GGUF calls gpt2) a decoder for another kind.
    """
    check_gguf(path)
    from gguf import GGUFReader
    from tokenizers import decoders
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    fields = GGUFReader(path).fields
    end = fields["tokenizer.ggml.eos_token_id"].contents()
    padding = fields.get("tokenizer.ggml.padding_token_id")
    tokenizer.eos_token = tokenizer.convert_ids_to_tokens(end)
    tokenizer.pad_token = tokenizer.convert_ids_to_tokens(end if padding is None else padding.contents())
    if fields["tokenizer.ggml.model"].contents() == "gpt2":
        tokenizer.backend_tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _render(tokenizer: "PreTrainedTokenizerFast") -> str:
    from jinja2 import TemplateError

    turn = [{"role": "user", "content": _PLACE}]
    try:
        return str(tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True))
    except TemplateError as error:
        raise CheckpointError(f"the chat template does not render ({error}); mend chat_template.jinja") from error


def _known_id(token_id: object, name: str) -> int:
    if not isinstance(token_id, int):
        raise CheckpointError(f"the tokenizer defines no {name}; set it in tokenizer_config.json")
    return token_id


def _without_control_tokens(tokenizer: "PreTrainedTokenizerFast") -> "Tokenizer":
    """A copy that does not know the added tokens which mark control: all but plain words.

    Not every control token is flagged special (Qwen3's <think> is not), so markup characters decide.
    """
    from tokenizers import Tokenizer

    tree = json.loads(tokenizer.backend_tokenizer.to_str())
    tree["added_tokens"] = [token for token in tree["added_tokens"] if not set(token["content"]) & set("<>|[]")]
    tree["post_processor"] = None
    tree["truncation"] = tree["padding"] = None
    return Tokenizer.from_str(json.dumps(tree))
