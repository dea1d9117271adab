"""A loaded checkpoint answers held-out items: from the full context, a truncated one, or as memory agent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tasks.evaluation.scores import Mode, Reply
from tasks.generation.base import Completion, Generator, Sampling
from tasks.memory.agent import AgentRun, run_agent
from tasks.params import Params
from tasks.progress import Meter
from tasks.prompts import question_prompt
from tasks.records import Item, Verdict
from tasks.rewards.judge import Judge
from tasks.rewards.judging.verdicts import Attempt, verdicts_of
from tasks.rewards.rules import extract_answer
from tasks.tokenization import ChatTokenizer
from tasks.truncation import fit

PROMPTS_PER_CALL = 64


@dataclass(frozen=True)
class Prompt:
    """A held-out item as the models get it; `cut` and `evidence_cut` tell what middle truncation left out."""

    item: Item
    ids: tuple[int, ...]
    cut: bool
    evidence_cut: bool


@dataclass(frozen=True)
class Reader:
    """A loaded checkpoint and everything it needs to answer."""

    name: str
    generator: Generator
    tokenizer: ChatTokenizer
    params: Params
    progress: Meter
    judge: Judge | None = None

    @property
    def greedy(self) -> Sampling:
        """The most likely reply, as long as the last stage allows."""
        return Sampling(0.0, 1.0, self.params.rl.stages["stage4"].max_output_tokens)

    @property
    def sampled(self) -> Sampling:
        """k replies as the training samples them."""
        sampling = self.params.rl.sampling
        return replace(
            self.greedy,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            samples=self.params.evaluation.samples,
        )


def prompt_of(item: Item, window: int, tokenizer: ChatTokenizer) -> Prompt:
    """Render an item for the full-context model, its documents cut in the middle to fit the window."""

    def render(documents: Sequence[str]) -> str:
        return question_prompt(documents, item.question)

    fitted = fit(item.documents, render, window, tokenizer)
    evidence = {index for index, name in enumerate(item.document_ids) if name in item.question.document_ids}
    return Prompt(
        item=item,
        ids=tuple(tokenizer.prompt_ids(render(fitted.documents))),
        cut=fitted.cut,
        evidence_cut=not evidence <= fitted.kept,
    )


def answer(reader: Reader, prompts: Sequence[Prompt], mode: Mode, sampling: Sampling) -> list[Reply]:
    """Replies to the rendered prompts, those of similar length together."""
    replies: list[Reply] = []
    for seed, batch in _batches(sorted(prompts, key=lambda prompt: len(prompt.ids)), reader.params.seed):
        groups = reader.generator.generate([prompt.ids for prompt in batch], sampling, seed)
        given = [
            _Given(prompt, sample, completion)
            for prompt, group in zip(batch, groups, strict=True)
            for sample, completion in enumerate(group)
        ]
        replies += _checked(reader, mode, given)
        reader.progress.advance(len(batch), f"{reader.name}, {mode}")
    return replies


def read_long(reader: Reader, prompts: Sequence[Prompt]) -> list[Reply]:
    """Replies of the memory agent, which reads the whole documents chunk by chunk."""
    replies: list[Reply] = []
    for seed, batch in _batches(prompts, reader.params.seed):
        runs = run_agent(
            reader.generator,
            reader.tokenizer,
            [prompt.item.documents for prompt in batch],
            [prompt.item.question for prompt in batch],
            reader.params.memory,
            reader.greedy,
            seed,
            observe=lambda step: reader.progress.show(f"{reader.name}, chunk {step.chunk} of {step.chunks}"),
        )
        given = [
            _Given(replace(prompt, cut=False, evidence_cut=False), 0, _whole(run))
            for prompt, run in zip(batch, runs, strict=True)
        ]
        replies += _checked(reader, "agent", given)
        reader.progress.advance(len(batch), f"{reader.name}, memory agent")
    return replies


@dataclass(frozen=True)
class _Given:
    """A completion as it came, before anything is known of it."""

    prompt: Prompt
    sample: int
    completion: Completion


def _checked(reader: Reader, mode: Mode, given: Sequence[_Given]) -> list[Reply]:
    """Replies with the verdicts that also give the training reward; unscored ones stay so."""
    attempts = [Attempt(one.prompt.item.question, one.completion.text, one.completion.finish) for one in given]
    verdicts = verdicts_of(attempts, reader.judge)
    return [_reply(reader.name, mode, one, verdict) for one, verdict in zip(given, verdicts, strict=True)]


def _reply(checkpoint: str, mode: Mode, given: _Given, verdict: Verdict) -> Reply:
    prompt, completion, question = given.prompt, given.completion, given.prompt.item.question
    return Reply(
        checkpoint=checkpoint,
        mode=mode,
        question_id=question.id,
        domain=question.domain,
        context_tokens=prompt.item.length_bucket,
        sample=given.sample,
        verdict=verdict,
        finish=completion.finish,
        extracted=extract_answer(completion.text, completion.finish) is not None,
        response_tokens=len(completion.token_ids),
        cut=prompt.cut,
        evidence_cut=prompt.evidence_cut,
        text=completion.text,
    )


def _whole(run: AgentRun) -> Completion:
    """The agent's answer, with the tokens of all its turns: what reading cost."""
    ids = tuple(token for turn in run.turns for token in turn.response_ids)
    return Completion(token_ids=ids, text=run.reply, finish=run.finish)


def _batches(prompts: Sequence[Prompt], seed: int) -> Iterator[tuple[int, Sequence[Prompt]]]:
    """Slices of the prompts, each with a seed of its own that is the same for every checkpoint."""
    for start in range(0, len(prompts), PROMPTS_PER_CALL):
        batch_seed = int(np.random.SeedSequence([seed, start]).generate_state(1)[0])
        yield batch_seed, prompts[start : start + PROMPTS_PER_CALL]
