"""A stage's questions as verl's dataset: a row is an item, its context cut in the middle where it is too long."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch.utils.data import Dataset

from tasks.artifacts import read_items
from tasks.prompts import question_prompt
from tasks.records import Item
from tasks.rl.engines.verl.recipe import tokenizer_of
from tasks.rl.loop import question_key
from tasks.tokenization import ChatTokenizer
from tasks.truncation import fit

logger = logging.getLogger(__name__)


class ItemDataset(Dataset[dict[str, object]]):
    """verl builds it from its `data` section. Overlong contexts lose their middle (QwenLong-L1.5 §5.1), unless the
    memory agent reads them: it takes any length. verl itself would cut the left of the prompt, and with it the
    instructions.
    """

    def __init__(self, data_files: str, tokenizer: Any, config: Any, **_: Any) -> None:
        limit = None if config.agent == "memory_agent" else int(config.max_prompt_length)
        items = read_items(Path(data_files))
        self.items = items if limit is None else fit_items(items, limit, tokenizer_of(tokenizer.name_or_path))
        self._places = {question_key(item): place for place, item in enumerate(self.items)}

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int) -> dict[str, object]:
        item = self.items[place]
        return {
            "index": place,
            "data_source": item.question.domain.value,
            "item": item.model_dump_json(),
        }

    def row(self, key: str) -> dict[str, object]:
        """The row of a question on its context, by the sampler's name for it."""
        return self[self._places[key]]


def fit_items(items: Sequence[Item], limit: int, tokenizer: ChatTokenizer) -> list[Item]:
    """The items with contexts of at most `limit` prompt tokens; how many were cut is said in the log."""
    fitted = [_fit_item(item, limit, tokenizer) for item in items]
    cut = sum(new is not old for new, old in zip(fitted, items, strict=True))
    if cut:
        logger.warning("%d of %d contexts exceed %d tokens: cut in the middle", cut, len(items), limit)
    return fitted


def _fit_item(item: Item, limit: int, tokenizer: ChatTokenizer) -> Item:
    if item.input_tokens <= limit:  # counted when the context was made
        return item
    question = item.question
    fitted = fit(
        item.documents,
        lambda documents: question_prompt(documents, question),
        limit,
        tokenizer,
    )
    return item.model_copy(update={"documents": fitted.documents})
