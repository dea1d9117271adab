"""Holds a model to a JSON schema while it samples: tokens that no valid reply could have next are struck out.

Axes: N rows, V vocabulary.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from pydantic import BaseModel
from torch import Tensor

from tasks.errors import CheckpointError
from tasks.generation.schemas import strict_schema
from tasks.tokenization import ChatTokenizer

if TYPE_CHECKING:
    from llguidance import LLMatcher

PROBE = 'a "b", c'  # what llguidance must read in tokens as we wrote it


class Guidance:
    """Makes guides for one tokenizer; by llguidance, which works on the tokens' bytes."""

    def __init__(self, tokenizer: ChatTokenizer, end_ids: Sequence[int]) -> None:
        """`end_ids` may follow a complete object, and nothing else may.

        Raises:
            CheckpointError: llguidance does not understand the tokenizer.
        """
        from llguidance import LLTokenizer

        self._tokenizer = LLTokenizer(tokenizer.to_json(), eos_token=list(end_ids))
        if self._tokenizer.decode_str(tokenizer.encode(PROBE)) != PROBE:
            raise CheckpointError("the tokenizer's tokens are not the bytes that its definition says; copy it again")
        self._matchers: dict[type[BaseModel], LLMatcher] = {}  # at the beginning: a bounded list takes seconds to make

    def guide(self, schema: type[BaseModel] | None) -> "Guide | None":
        """A guide for one reply; None where there is no schema."""
        if schema is None:
            return None
        if schema not in self._matchers:
            self._matchers[schema] = self._matcher(schema)
        return Guide(self._matchers[schema].deep_copy())

    def _matcher(self, schema: type[BaseModel]) -> "LLMatcher":
        from llguidance import LLMatcher

        matcher = LLMatcher(self._tokenizer, _grammar(schema), log_level=0)
        if matcher.is_error():
            raise ValueError(f"{schema.__name__} is no schema to hold a model to: {matcher.get_error()}")
        return matcher


class Guide:
    """Follows one reply token by token."""

    def __init__(self, matcher: "LLMatcher") -> None:
        self._matcher = matcher

    def strike_out(self, logits_V: Tensor) -> None:
        """Set the logits of impossible tokens to −∞, in place."""
        bits = torch.frombuffer(bytearray(self._matcher.compute_bitmask()), dtype=torch.uint8)
        allowed = ((bits[:, None] >> torch.arange(8, dtype=torch.uint8)) & 1).bool().flatten()
        known = min(len(allowed), len(logits_V))
        logits_V[:known].masked_fill_(~allowed[:known], -torch.inf)
        logits_V[known:] = -torch.inf

    def follow(self, token: int) -> None:
        """The token that was drawn."""
        if not self._matcher.consume_token(token):
            raise ValueError(f"token {token} does not follow: {self._matcher.get_error()}")


@lru_cache
def _grammar(schema: type[BaseModel]) -> str:
    from llguidance import LLMatcher

    return LLMatcher.grammar_from_json_schema(
        json.dumps(strict_schema(schema)),
        # One space where people put one, none elsewhere: small models else write white space until they are cut.
        overrides={"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    )
