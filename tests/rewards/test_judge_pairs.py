"""A preference is what survives the swap of the order."""

from tasks.generation.chat import Request, Unanswered
from tasks.generation.scripted import ScriptedChat
from tasks.rewards.judging import pairs
from tasks.rewards.judging.pairs import Pair, Preference, prefer
from tasks.rewards.judging.tally import Tally
from tests.rewards.judges import texts

LEFT_IS_BETTER = Pair("Where?", "Bergen, the port", "Oslo", "Bergen")


def preferences(script: object, *all_pairs: Pair, context_tokens: int = 4096) -> list[Preference]:
    chat = ScriptedChat(script, context_tokens=context_tokens)  # type: ignore[arg-type]
    return list(prefer(chat, all_pairs, Tally(1.0)))


def honest(request: Request) -> str:
    parts = dict(texts(request.prompt))
    right = [parts["reference"] in parts[label] for label in ("first answer", "second answer")]
    return "Verdict: EQUAL" if right[0] == right[1] else f"Verdict: {'FIRST' if right[0] else 'SECOND'}"


def test_an_honest_judge_prefers_the_better_answer_on_either_side() -> None:
    swapped = Pair("Where?", "Oslo", "Bergen, the port", "Bergen")
    alike = Pair("Where?", "Rome", "Oslo", "Bergen")
    assert preferences(honest, LEFT_IS_BETTER, swapped, alike) == [Preference.LEFT, Preference.RIGHT, Preference.TIE]


def test_both_orders_are_asked_and_each_answer_takes_each_place() -> None:
    chat = ScriptedChat(honest)
    list(prefer(chat, [LEFT_IS_BETTER], Tally(1.0)))
    first, second = (dict(texts(request.prompt)) for request in chat.requests)
    assert first["first answer"] == second["second answer"] == LEFT_IS_BETTER.left
    assert first["second answer"] == second["first answer"] == LEFT_IS_BETTER.right


def test_a_judge_that_follows_the_order_has_no_preference() -> None:
    assert preferences(["Verdict: FIRST"] * 2, LEFT_IS_BETTER) == [Preference.TIE]
    assert preferences(["SECOND"] * 2, LEFT_IS_BETTER) == [Preference.TIE]
    assert preferences(["FIRST", "EQUAL"], LEFT_IS_BETTER) == [Preference.TIE]


def test_silence_in_one_order_is_no_tie() -> None:
    assert preferences(["FIRST", Unanswered("down")], LEFT_IS_BETTER) == [Preference.UNSCORED]
    assert preferences(["FIRST", "hm", "hm"], LEFT_IS_BETTER) == [Preference.UNSCORED]
    assert preferences(["FIRST", "hm", "SECOND"], LEFT_IS_BETTER) == [Preference.LEFT]  # said when asked again


def test_answers_too_long_to_compare_are_unscored_and_not_asked() -> None:
    long = Pair("Where?", "word " * 500, "Oslo")
    assert preferences(["FIRST", "SECOND"], long, LEFT_IS_BETTER, context_tokens=600) == [
        Preference.UNSCORED,
        Preference.LEFT,
    ]


def test_the_reference_is_left_out_where_there_is_none_and_no_pair_is_no_call() -> None:
    chat = ScriptedChat(["FIRST", "FIRST"])
    list(prefer(chat, [Pair("Where?", "a", "b")], Tally(1.0)))
    assert "<reference " not in chat.requests[0].prompt
    assert preferences([]) == []


def test_pairs_stream(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(pairs, "WINDOW", 2)
    drawn: list[int] = []

    def coming():  # type: ignore[no-untyped-def]
        for number in range(6):
            drawn.append(number)
            yield LEFT_IS_BETTER

    stream = prefer(ScriptedChat(honest), coming(), Tally(1.0))
    assert next(stream) is Preference.LEFT
    assert drawn == [0, 1]
