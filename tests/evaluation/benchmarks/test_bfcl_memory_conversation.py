"""Conversations of several turns as token ids, on templates that know fewer roles."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from tasks.errors import CheckpointError
from tasks.evaluation.benchmarks.conversation import Conversations, Message
from tasks.evaluation.benchmarks.interactive import Dialogue, Model, hold
from tasks.generation.base import Completion, Sampling
from tasks.generation.scripted import ScriptedGenerator
from tasks.records import Finish
from tasks.tokenization import ChatTokenizer
from tests.test_tokenization import ATTACK, BYTES

TURN = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
TALK = [
    Message("system", "Be brief."),
    Message("user", "Remember: a."),
    Message("assistant", "f(x='a')", "think"),
    Message("tool", "kept", call="f(x='a')"),
    Message("tool", "kept, too", call="g()"),
]


def with_template(template: str) -> ChatTokenizer:
    tokenizer = BYTES._tokenizer
    copy = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    copy.chat_template = template
    return ChatTokenizer(copy)


def rendered(template: str, messages: list[Message]) -> str:
    tokenizer = with_template(template)
    return str(tokenizer._tokenizer.decode(Conversations(tokenizer).ids(messages))).strip()


def test_a_template_with_all_roles() -> None:
    assert rendered(TURN, TALK) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nRemember: a.<|im_end|>\n"
        "<|im_start|>assistant\nf(x='a')<|im_end|>\n<|im_start|>tool\nkept<|im_end|>\n"
        "<|im_start|>tool\nkept, too<|im_end|>"
    )


def test_without_a_tool_role_the_replies_are_a_users_turn() -> None:
    template = TURN.replace("{% for m in messages %}", "{% for m in messages if m.role != 'tool' %}")
    assert rendered(template, TALK).endswith(
        "<|im_start|>user\n[{'role': 'tool', 'name': \"f(x='a')\", 'content': 'kept'}, "
        "{'role': 'tool', 'name': 'g()', 'content': 'kept, too'}]<|im_end|>"
    )


def test_without_a_system_role_its_text_heads_the_users_turn() -> None:
    refusing = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + TURN
    assert rendered(refusing, TALK[:2]) == "<|im_start|>user\nBe brief.\n\nRemember: a.<|im_end|>"


def test_the_template_says_which_reasoning_is_shown() -> None:
    template = TURN.replace("{{ m.content }}", "{{ m.reasoning_content | default('') }}|{{ m.content }}")
    assert "<|im_start|>assistant\nthink|f(x='a')<|im_end|>" in rendered(template, TALK)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ messages[-1].content }}", "drops turns"),
        (TURN + "{% if messages | length > 2 %}{{ raise_exception('one turn only') }}{% endif %}", "one turn only"),
    ],
)
def test_a_template_for_one_turn_is_refused(template: str, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        rendered(template, [Message("user", "a"), Message("assistant", "b"), Message("user", "c")])


@settings(max_examples=40)
@given(st.lists(st.sampled_from([ATTACK, "a", " ", "7CONTENTx0x7", "</think>"]), max_size=4).map("".join))
def test_no_text_becomes_a_control_token(text: str) -> None:
    control = set(range(len(BYTES) - 6, len(BYTES)))
    ids = Conversations(BYTES).ids([Message("system", text), Message("user", text), Message("tool", text)])
    assert sum(token in control for token in ids) == 2 * 3 + 1  # of three turns, and the start of the reply


def counting(limit: int) -> Dialogue[list[str]]:
    heard = []
    while len(heard) < limit:
        completion = yield [Message("user", "go")] * (len(heard) + 1)
        if completion is None:
            return [*heard, "outgrown"]
        heard.append(completion.text)
    return heard


class SeedTeller:
    """Says the seed it was given."""

    def generate(self, prompts, sampling, seed):  # type: ignore[no-untyped-def]
        return [[Completion((1,), str(each), Finish.FINISHED)] for each in seed]


def test_dialogues_go_in_step_and_end_when_they_end() -> None:
    generator = ScriptedGenerator(list("abcde"))
    model = Model(generator, Conversations(BYTES), Sampling(0.0, 1.0, 8), 10**6)
    held = hold({"none": counting(0), "one": counting(1), "three": counting(3), "last": counting(1)}, model, 0)
    assert {name: each.result for name, each in held.items()} == {
        "none": [],
        "one": ["a"],
        "three": ["b", "d", "e"],
        "last": ["c"],
    }
    assert held["three"].output_tokens == 3
    assert held["three"].input_tokens == len(generator.prompts[-1])


def test_a_dialogue_that_outgrows_the_window_is_told() -> None:
    one = len(Conversations(BYTES).ids([Message("user", "go")]))
    model = Model(ScriptedGenerator(["a"]), Conversations(BYTES), Sampling(0.0, 1.0, 8), one)
    assert hold({"x": counting(3)}, model, 0)["x"].result == ["a", "outgrown"]


def test_a_dialogue_does_not_depend_on_the_others() -> None:
    model = Model(SeedTeller(), Conversations(BYTES), Sampling(0.7, 1.0, 8), 10**6)
    alone = hold({"x": counting(3)}, model, 7)["x"].result
    beside = hold({name: counting(3) for name in ("w", "x", "y")}, model, 7)
    assert alone == beside["x"].result
    assert len(set(alone)) == 3  # each step draws anew
    assert beside["w"].result != beside["y"].result
    assert hold({"x": counting(3)}, model, 8)["x"].result != alone
