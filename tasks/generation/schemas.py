"""Schemas for models that are held to them while they write."""

import json
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, Field

LENGTHS = ("minLength", "maxLength")


@lru_cache
def strict_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema in the dialect that servers enforce: no key beyond the fields, no field left out.

    A field with a default is written like the others, so that a model decides about each.
    """
    from openai import pydantic_function_tool

    return dict(pydantic_function_tool(schema)["function"]["parameters"])


def served_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The same without the lengths of texts, which OpenAI's own server does not take."""
    return dict(_without_lengths(strict_schema(schema)))


def _without_lengths(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_lengths(child) for child in node]
    if not isinstance(node, dict):
        return node
    text = node.get("type") == "string"
    return {key: _without_lengths(value) for key, value in node.items() if not (text and key in LENGTHS)}


def at_most(characters: int) -> Any:
    """A text field that a model is held to while it writes; a longer text of one that cannot be held stays valid."""
    return Field(json_schema_extra={"maxLength": characters})


def with_schema(prompt: str, schema: type[BaseModel]) -> str:
    """The prompt for a model that cannot be held to the schema: it is told."""
    text = json.dumps(strict_schema(schema), ensure_ascii=False)
    return f"{prompt}\n\nReply with one JSON object and nothing else. Its JSON schema:\n{text}"
