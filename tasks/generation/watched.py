"""A model whose replies are counted where people can see it."""

from collections.abc import Iterable, Iterator, Mapping

from tasks.generation.chat import Reply, Request, Unanswered
from tasks.generation.journal import Remembered
from tasks.progress import Meter


class Watched:
    """Passes everything on and tells a meter of each reply."""

    def __init__(self, model: Remembered, progress: Meter) -> None:
        self._model = model
        self._progress = progress

    @property
    def context_tokens(self) -> int:
        return self._model.context_tokens

    @property
    def max_output_tokens(self) -> int:
        return self._model.max_output_tokens

    def count(self, text: str) -> int:
        return self._model.count(text)

    def counts(self) -> Mapping[str, float]:
        """What the model counts."""
        return self._model.counts()

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply | Unanswered]:
        for reply in self._model.complete(requests):
            self._progress.advance(1, "replies")
            yield reply
