"""Memory rollouts: one verdict a trajectory, every turn of it in the episode."""

from tasks.generation.base import Completion
from tasks.generation.scripted import ScriptedChat, ScriptedGenerator
from tasks.memory.rollout import roll_out
from tasks.records import Domain, Finish, Item, Question, Verdict
from tasks.rewards.judge import Judge
from tests.memory.doubles import PARAMS, SAMPLING, WordTokenizer, question, update
from tests.rewards.judges import approving


def item(asked: Question, *documents: str) -> Item:
    return Item(question=asked, documents=documents, document_ids=("d",), length_bucket=8, input_tokens=8)


def test_the_final_reward_belongs_to_the_whole_trajectory():
    replies = [
        *[update(name, "p") for name in ("a1", "b1", "a2", "b2")],
        "The answer is Ann.",
        "The answer is Bob.",
    ]
    episodes = roll_out(
        ScriptedGenerator(replies),
        WordTokenizer(),
        [item(question(), "a b c d. e f g h.")],
        2,
        PARAMS,
        SAMPLING,
        0,
    )
    assert [(episode.group, episode.verdict, episode.reward) for episode in episodes] == [
        (0, Verdict.CORRECT, 1.0),
        (0, Verdict.WRONG, 0.0),
    ]
    assert [len(episode.turns) for episode in episodes] == [3, 3]
    assert {episode.domain for episode in episodes} == {Domain.MULTI_HOP}


def test_groups_follow_the_items_and_may_have_different_numbers_of_turns():
    replies = [update("m", "p")] * 2 + ["The answer is Ann."] * 4
    items = [item(question(), "a."), item(question())]
    episodes = roll_out(ScriptedGenerator(replies), WordTokenizer(), items, 2, PARAMS, SAMPLING, 0)
    assert [episode.group for episode in episodes] == [0, 0, 1, 1]
    assert [len(episode.turns) for episode in episodes] == [2, 2, 1, 1]


def test_training_tokens_are_the_sampled_ids():
    # Ids that no tokenizer would give for these texts: a re-rendering could not produce them.
    replies = [
        Completion((901, 902), update("m", "p"), Finish.FINISHED),
        Completion((903,), "The answer is Ann.", Finish.FINISHED),
    ]
    generator = ScriptedGenerator(replies)
    (episode,) = roll_out(generator, WordTokenizer(), [item(question(), "a.")], 1, PARAMS, SAMPLING, 0)
    assert [turn.response_ids for turn in episode.turns] == [(901, 902), (903,)]
    assert [turn.prompt_ids for turn in episode.turns] == generator.prompts


def test_a_question_without_gold_is_unscored():
    asked = question().model_copy(update={"gold": ()})
    generator = ScriptedGenerator(["The answer is Ann."])
    (episode,) = roll_out(generator, WordTokenizer(), [item(asked)], 1, PARAMS, SAMPLING, 0)
    assert (episode.verdict, episode.reward) == (Verdict.UNSCORED, None)


def test_no_items_give_no_episodes():
    assert roll_out(ScriptedGenerator([]), WordTokenizer(), [], 2, PARAMS, SAMPLING, 0) == []


def test_the_judge_sees_final_answers_alone():
    replies = [update("Ann", "p")] * 2 + ["The answer is Anna.", "She said so."]
    judge = Judge(ScriptedChat(approving), 1.0)
    episodes = roll_out(
        ScriptedGenerator(replies), WordTokenizer(), [item(question(), "a.")], 2, PARAMS, SAMPLING, 0, judge
    )
    assert [(episode.verdict, episode.lenient) for episode in episodes] == [
        (Verdict.CORRECT, 0.0),
        (Verdict.WRONG, 0.0),
    ]
    assert judge.counts()["asked"] == 1
