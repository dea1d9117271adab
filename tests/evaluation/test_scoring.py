import math

import pytest

from tasks.evaluation.scores import Mode, Reply
from tasks.evaluation.scoring import Bootstrap, compare, key_of, score_checkpoint, score_long, table_of
from tasks.records import Domain, Finish, Item, Verdict
from tests.evaluation.conftest import ItemFactory

BOOTSTRAP = Bootstrap(200, 0)
TEXTS = {"1": "<think> w2 </think> The answer is w1.", "0": "The answer is w9.", "?": "<think> w1"}
VERDICTS = {"1": Verdict.CORRECT, "0": Verdict.WRONG, "?": Verdict.UNSCORED}


def replies(item: Item, checkpoint: str, mode: Mode, verdicts: str, evidence_cut: bool = False) -> list[Reply]:
    return [
        Reply(
            checkpoint=checkpoint,
            mode=mode,
            question_id=item.question.id,
            domain=item.question.domain,
            context_tokens=item.length_bucket,
            sample=sample,
            verdict=VERDICTS[letter],
            finish=Finish.TRUNCATED if letter == "?" else Finish.FINISHED,
            extracted=letter != "?",
            response_tokens=10 * (sample + 1),
            cut=evidence_cut,
            evidence_cut=evidence_cut,
            text=TEXTS[letter],
        )
        for sample, letter in enumerate(verdicts)
    ]


@pytest.fixture
def items(item: ItemFactory) -> list[Item]:
    return [
        item("a", tokens=128),
        item("b", tokens=128, domain=Domain.MULTI_HOP),
        item("c", tokens=128),
        item("a", tokens=512),  # the same question on a longer context is another item
    ]


def test_cells_by_hand(items: list[Item]) -> None:
    a, b, c, longer = items
    given = [
        *replies(a, "base", "sampled", "00"), *replies(a, "model", "sampled", "11"),
        *replies(b, "base", "sampled", "00"), *replies(b, "model", "sampled", "01"),
        *replies(c, "base", "sampled", "11"), *replies(c, "model", "sampled", "0?"),
        *replies(longer, "base", "sampled", "00"), *replies(longer, "model", "sampled", "10"),
    ]  # fmt: skip
    given += [reply for each in items for name in ("base", "model") for reply in replies(each, name, "greedy", "1")]
    guesses = {key_of(a): 0.5, key_of(b): 0.25, key_of(c): 0.0, key_of(longer): 0.1}
    scores = score_checkpoint(table_of(items, given, guesses), "model", "base", BOOTSTRAP)
    short = scores.cell(None, 128)
    assert short is not None
    assert short.questions == 3
    assert short.average == pytest.approx((1 + 0.5 + 0) / 3)
    assert short.pass_at_k == pytest.approx(2 / 3)
    assert short.first == pytest.approx((1 + 0 + 0) / 3)
    assert short.majority == pytest.approx((1 + 0.5 + 0) / 3)  # the second's two answers tie, the third's one stands
    assert (short.response_tokens, short.unscored_share) == (15.0, 1 / 6)
    assert short.greedy == 1.0
    assert short.guess == pytest.approx(0.25)
    assert short.gain is not None
    assert short.gain.difference == pytest.approx((1 + 0.5 - 1) / 3)
    whole = scores.cell(None, None)
    assert whole is not None
    assert whole.average == pytest.approx((0.5 + 0.5) / 2)  # lengths count the same: three questions and one
    assert whole.guess == pytest.approx((0.25 + 0.1) / 2)
    hop = scores.cell(Domain.MULTI_HOP, None)
    assert hop is not None
    assert (hop.questions, hop.average) == (1, 0.5)
    assert scores.cell(Domain.MULTI_HOP, 512) is None
    assert whole.unscored_share == whole.truncated_share == whole.unanswered_share == 1 / 8
    assert whole.response_tokens == 15.0
    assert scores.longest_reply == 20
    assert scores.generated_tokens == 4 * (10 + 20) + 4 * 10  # sampled, and greedy
    assert scores.thinking_share == 4 / 8


def test_the_base_has_no_gain_over_itself(items: list[Item]) -> None:
    given = [reply for each in items for mode in ("greedy", "sampled") for reply in replies(each, "base", mode, "1")]
    scores = score_checkpoint(table_of(items, given, {key_of(each): 0.0 for each in items}), "base", "base", BOOTSTRAP)
    assert all(cell.gain is None for cell in scores.cells)


def test_all_unscored_has_no_score(items: list[Item]) -> None:
    given = [
        reply
        for each in items
        for name in ("base", "model")
        for mode in ("greedy", "sampled")
        for reply in replies(each, name, mode, "?")
    ]
    scores = score_checkpoint(table_of(items, given, {key_of(each): 0.0 for each in items}), "model", "base", BOOTSTRAP)
    whole = scores.cell(None, None)
    assert whole is not None
    assert (whole.greedy, whole.first, whole.average, whole.pass_at_k, whole.majority, whole.gain) == (None,) * 6
    assert whole.unscored_share == 1.0


def test_memory_agent_beside_truncation(item: ItemFactory) -> None:
    items = [item("a", tokens=1024), item("b", tokens=1024), item("a", tokens=2048)]
    given = [
        *replies(items[0], "m", "agent", "1"), *replies(items[0], "m", "truncation", "0", evidence_cut=True),
        *replies(items[1], "m", "agent", "1"), *replies(items[1], "m", "truncation", "1"),
        *replies(items[2], "m", "agent", "0"), *replies(items[2], "m", "truncation", "0", evidence_cut=True),
    ]  # fmt: skip
    rows = score_long(table_of(items, given, {key_of(each): 0.2 for each in items}), "m", BOOTSTRAP)
    first = rows[0]
    assert (first.domain, first.context_tokens, first.questions) == (None, 1024, 2)
    assert (first.agent, first.truncation, first.evidence_cut_share) == (1.0, 0.5, 0.5)
    assert first.gain is not None
    assert first.gain.difference == 0.5
    assert math.isclose(first.guess, 0.2)
    assert [(row.domain, row.context_tokens) for row in rows] == [
        (None, 1024),
        (None, 2048),
        (Domain.READING_COMPREHENSION, 1024),
        (Domain.READING_COMPREHENSION, 2048),
    ]


def test_no_long_items_no_rows() -> None:
    assert score_long(table_of([], [], {}), "m", BOOTSTRAP) == []


def greedy(items: list[Item], verdicts: dict[str, str]) -> list[Reply]:
    """A letter per item and checkpoint, given greedily and in the one sample."""
    return [
        reply
        for name, letters in verdicts.items()
        for each, letter in zip(items, letters, strict=True)
        for mode in ("greedy", "sampled")
        for reply in replies(each, name, mode, letter)
    ]


def test_checkpoints_in_pairs_by_hand(items: list[Item]) -> None:
    """Each with the one before, then with the first; what either has no verdict for is left out and counted."""
    given = greedy(items, {"base": "0000", "one": "1110", "two": "011?"})
    found = compare(table_of(items, given, {}), ["base", "one", "two"], BOOTSTRAP)
    assert [(each.first, each.second) for each in found] == [("base", "one"), ("one", "two"), ("base", "two")]
    assert [(each.only_first, each.only_second) for each in found] == [(0, 3), (1, 0), (0, 2)]
    assert [(each.pairs, each.unscored) for each in found] == [(4, 0), (3, 1), (3, 1)]
    assert [each.p for each in found] == [0.25, 1.0, 0.5]  # 2/2³, one discordant item, 2/2²
    assert [each.adjusted_p for each in found] == [0.75, 1.0, 1.0]
    assert found[0].gain is not None
    assert found[0].gain.difference == pytest.approx((1 + 0) / 2)  # lengths count the same
    assert found[1].gain is not None
    assert found[1].gain.questions == 3


def test_one_checkpoint_has_no_pairs(items: list[Item]) -> None:
    assert compare(table_of(items, greedy(items, {"base": "0101"}), {}), ["base"], BOOTSTRAP) == ()
    assert compare(table_of([], [], {}), [], BOOTSTRAP) == ()


def test_two_checkpoints_are_one_pair(items: list[Item]) -> None:
    given = greedy(items, {"base": "0101", "one": "0101"})
    (found,) = compare(table_of(items, given, {}), ["base", "one"], BOOTSTRAP)
    assert (found.only_first, found.only_second, found.p, found.adjusted_p) == (0, 0, 1.0, 1.0)


def test_pairs_without_verdicts_have_no_p_and_no_part_in_the_correction(items: list[Item]) -> None:
    given = greedy(items, {"base": "0000", "one": "????", "two": "1111"})
    found = compare(table_of(items, given, {}), ["base", "one", "two"], BOOTSTRAP)
    assert [each.p for each in found] == [None, None, 0.125]
    assert [each.adjusted_p for each in found] == [None, None, 0.125]
    assert [each.unscored for each in found] == [4, 4, 0]
    assert found[0].gain is None
