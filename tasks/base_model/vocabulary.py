"""The closed vocabulary of the tiny model: every word the renderer and the prompts can write, then characters.

Words outside it are spelled in characters, so any text can be read and copied, only slowly.
"""

import string
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tasks.corpus.countries import Country, vocabulary
from tasks.corpus.grammar import LETTERS, MAX_COUNT, MEASURES, SPEAKERS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, END, USER, ASSISTANT = "<|pad|>", "<|end|>", "<|user|>", "<|assistant|>"
TAGS = ("<think>", "</think>", "<memory>", "</memory>", "<plan>", "</plan>")
CONTROL = (PAD, END, USER, ASSISTANT, *TAGS)
UNKNOWN = "[UNK]"
WORDS = (
    "The the of is What Which country has with capital currency demonym largest smallest neighbour calling code "
    "Yearly report on No In dialogue what total highest number and Document Question Options Memory Plan Update "
    "memory Earlier questions Propose a an easy hard question none read find done Reference Given answer Verdict "
    "correct incorrect Answer"
).split()
PUNCTUATION = ". , : ? | ( ) + = -".split()
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message.role == 'assistant' %}<|assistant|>{{ message.content }}<|end|>"
    "{% else %}<|user|>{{ message.content }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def build_tokenizer(countries: Sequence[Country]) -> "PreTrainedTokenizerFast":
    """One token per word of the closed language; names of several words are single added tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    single, several = _names(countries)
    words = [*CONTROL, UNKNOWN, *PUNCTUATION, *LETTERS, *WORDS, *MEASURES, *SPEAKERS]
    words += [str(number) for number in range(2 * MAX_COUNT + 1)] + single
    characters = string.ascii_letters + string.digits + string.punctuation
    words += [*characters, *(f"##{character}" for character in characters)]
    table = {word: index for index, word in enumerate(dict.fromkeys(words))}
    core = Tokenizer(models.WordPiece(table, unk_token=UNKNOWN, max_input_chars_per_word=100))
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.decoder = decoders.WordPiece(cleanup=True)
    core.add_tokens([AddedToken(name, single_word=True, normalized=False) for name in several])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        padding_side="left",
        additional_special_tokens=[USER, ASSISTANT, *TAGS],
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def _names(countries: Sequence[Country]) -> tuple[list[str], list[str]]:
    """All entity names, split into one-word names and names that need an added token."""
    names = {name for values in vocabulary(countries).values() for name in values}
    names |= {country.region for country in countries}
    single = sorted(name for name in names if name.isalnum())
    return single, sorted(names - set(single))
