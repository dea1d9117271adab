"""Schemas that models are held to while they write, and what servers take of them."""

from pydantic import BaseModel

from tasks.generation.schemas import at_most, served_schema, strict_schema
from tasks.synthesis.extraction import StatedFacts, few_facts


class Note(BaseModel):
    title: str = at_most(5)
    maxLength: str = ""  # a field of that name is no length


class Notes(BaseModel):
    notes: list[Note]


def test_a_bound_is_shown_to_the_model_and_does_not_refuse_what_is_longer() -> None:
    assert strict_schema(Note)["properties"]["title"]["maxLength"] == 5
    assert Note(title="longer than five").title == "longer than five"


def test_servers_get_no_lengths_of_texts_and_all_fields() -> None:
    note = served_schema(Notes)["$defs"]["Note"]
    assert "maxLength" not in note["properties"]["title"]
    assert set(note["properties"]) == set(note["required"]) == {"title", "maxLength"}
    assert strict_schema(Note)["properties"]["title"]["maxLength"] == 5, "the cached schema stays whole"


def test_a_list_of_facts_is_bounded_for_the_model_alone() -> None:
    fact = {"subject": "a", "relation": "r", "object": "b", "date": None, "quote": "a r b"}
    few = few_facts(2)
    assert strict_schema(few)["properties"]["facts"]["maxItems"] == 2
    assert len(few.model_validate({"facts": [fact] * 3}).facts) == 3
    assert issubclass(few, StatedFacts) and few.__name__ == "StatedFacts"
