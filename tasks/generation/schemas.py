"""Schemas for models that are held to them while they write."""

import json
from functools import lru_cache
from typing import Any

from pydantic import BaseModel


@lru_cache
def strict_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema in the dialect that servers enforce: no key beyond the fields, no field left out.

    A field with a default is written like the others, so that a model decides about each.
    """
    from openai import pydantic_function_tool

    return dict(pydantic_function_tool(schema)["function"]["parameters"])


def with_schema(prompt: str, schema: type[BaseModel]) -> str:
    """The prompt for a model that cannot be held to the schema: it is told."""
    text = json.dumps(strict_schema(schema), ensure_ascii=False)
    return f"{prompt}\n\nReply with one JSON object and nothing else. Its JSON schema:\n{text}"
