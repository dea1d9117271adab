"""Full-context rollouts: G replies to each question on its whole context."""

from collections.abc import Sequence

from tasks.errors import InputError
from tasks.generation.base import Completion, Generator, Sampling
from tasks.prompts import question_prompt
from tasks.records import Item
from tasks.rewards.judge import Judge
from tasks.rl.episodes import Episode, Turn
from tasks.rl.scoring import Rollout, score
from tasks.tokenization import ChatTokenizer


def roll_out(
    generator: Generator,
    tokenizer: ChatTokenizer,
    items: Sequence[Item],
    max_input_tokens: int,
    sampling: Sampling,
    seed: int,
    judge: Judge | None = None,
) -> list[Episode]:
    """Sample `sampling.samples` (G) one-turn episodes per item; those of item p are `[p·G, (p+1)·G)`, group
    p.

    Raises:
        InputError: a rendered prompt is longer than `max_input_tokens`; nothing is cut silently.
    """
    prompts = [render_prompt(tokenizer, item, max_input_tokens) for item in items]
    replies = generator.generate(prompts, sampling, seed)
    rollouts = [
        _rollout(group, item, prompt, completion)
        for group, (item, prompt, completions) in enumerate(zip(items, prompts, replies, strict=True))
        for completion in completions
    ]
    return score(rollouts, judge)


def render_prompt(tokenizer: ChatTokenizer, item: Item, max_input_tokens: int) -> tuple[int, ...]:
    """The item's whole prompt as token ids, refused when over the limit."""
    question = item.question
    prompt = tuple(tokenizer.prompt_ids(question_prompt(item.documents, question)))
    if len(prompt) > max_input_tokens:
        raise InputError(
            f"question {question.id} has a prompt of {len(prompt)} tokens, the stage takes "
            f"{max_input_tokens}; curate the stage again with this tokenizer, or raise its max_input_tokens"
        )
    return prompt


def _rollout(group: int, item: Item, prompt: tuple[int, ...], completion: Completion) -> Rollout:
    turn = Turn(prompt, completion.token_ids, completion.finish, completion.logprobs)
    return Rollout(group, item.question, (turn,), completion.text, completion.finish)
