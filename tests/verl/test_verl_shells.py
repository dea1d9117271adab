"""What stands between verl and the recipe: rows and episodes, overlong contexts, state, export, names."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tasks.artifacts import write_items
from tasks.errors import CheckpointError, ParameterError, PipelineError
from tasks.params import load_params
from tasks.prompts import question_prompt
from tasks.records import Domain, Finish, Verdict
from tasks.rl.engines.verl.dataset import ItemDataset, fit_items
from tasks.rl.engines.verl.episodes import Row, episodes_of, ordered, place_of
from tasks.rl.engines.verl.export import save_model
from tasks.rl.engines.verl.metrics import NAMES, translate
from tasks.rl.engines.verl.recipe import Recipe
from tasks.rl.engines.verl.records import write_rollouts
from tasks.rl.engines.verl.state import KeptState, find_resume_point, latest_step, read_state
from tasks.rl.loop import make_sampler, question_key
from tasks.tracking import attach
from tests.conftest import CHECKOUT
from tests.rl.tiny import tiny_items, tiny_tokenizer

BASE = CHECKOUT / "models/tiny-base"


def row(key: str, verdict: Verdict = Verdict.CORRECT, reply: tuple[int, ...] = (5, 1)) -> Row:
    return Row(
        key, (3, 4), reply, torch.zeros(len(reply)), Finish.FINISHED, verdict, Domain.MULTI_HOP, lenient=1.0,
        judge=("p", {}),
    )  # fmt: skip


# ── rows and episodes ──


def test_a_key_names_question_sample_and_turn():
    assert place_of("12-3_5_0") == (3, 5, 0)
    assert place_of("pad0f3a_1_0") > place_of("12-99_5_0")  # padding belongs behind everything


def test_rows_are_ordered_as_numbers_not_as_text():
    keys = ["1-10_0_0", "pad7_0_0", "1-2_1_0", "1-2_0_10", "1-2_0_9"]
    expected = ["1-2_0_9", "1-2_0_10", "1-2_1_0", "1-10_0_0", "pad7_0_0"]
    for seed in range(5):
        shuffled = random.Random(seed).sample(keys, len(keys))
        assert [shuffled[place] for place in ordered(shuffled)] == expected


def small_rl(**changes: int):
    return load_params(CHECKOUT / "params.yaml").rl.model_copy(update=changes)


def test_turns_of_a_sample_make_one_episode_with_the_last_turns_verdict():
    rows = [row("4-0_0_0", Verdict.WRONG), row("4-0_0_1", Verdict.WRONG), row("4-0_1_0", Verdict.UNSCORED)]
    first, second = episodes_of(rows, small_rl(batch_prompts=1, group_size=2))
    assert (len(first.turns), first.verdict, first.reward, first.group) == (2, Verdict.WRONG, 0.0, 0)
    assert (second.verdict, second.reward) == (Verdict.UNSCORED, None)  # unscored is no reward of 0
    assert (first.lenient, second.lenient) == (1.0, 1.0)  # of the text alone


def test_a_failed_episode_ends_the_stage_instead_of_shrinking_its_group():
    with pytest.raises(PipelineError, match="1 of 2 episodes failed"):
        episodes_of([row("4-0_0_0")], small_rl(batch_prompts=1, group_size=2))


# ── contexts ──


def test_only_overlong_contexts_lose_their_middle():
    tokenizer, (short, *_) = tiny_tokenizer(), tiny_items()
    long = short.model_copy(update={"documents": ("red " * 30, "green " * 30), "input_tokens": 90})
    limit = tokenizer.prompt_length(question_prompt(short.documents, short.question))
    kept, cut = fit_items([short, long], limit + 10, tokenizer)
    assert kept is short
    length = tokenizer.prompt_length(question_prompt(cut.documents, cut.question))
    assert length <= limit + 10
    assert cut.documents[0].startswith("red") and cut.documents[-1].endswith("green")


def test_the_memory_agent_gets_the_whole_context(tmp_path):
    file = tmp_path / "items.parquet"
    item = tiny_items()[0].model_copy(update={"documents": ("red " * 3000,)})
    write_items(file, [item])

    class Tokenizer:
        name_or_path = str(BASE)

    class Config:
        agent, max_prompt_length = "memory_agent", 16

    dataset = ItemDataset(str(file), Tokenizer(), Config())
    assert dataset.items == [item]
    assert dataset.row(question_key(item))["data_source"] == item.question.domain.value


# ── state ──


def recipe(fingerprint: str = "f", run_id: str = "r1", nodes: int = 1) -> Recipe:
    overrides = ("rl.batch_prompts=2", "cluster.gpus_per_node=1", f"cluster.nodes={nodes}")
    params = load_params(CHECKOUT / "params.yaml", overrides)
    return Recipe("stage1", params, fingerprint, run_id, "sqlite:///mlflow.db")


def kept_state(**who: Any) -> KeptState:
    mine = recipe(**who)
    return KeptState(mine, make_sampler(tiny_items(), mine.params.rl, 0))


def saved(folder: Path, step: int, **who: Any) -> KeptState:
    kept = kept_state(**who)
    (folder / f"global_step_{step}").mkdir(parents=True)
    torch.save(kept.state_dict(), folder / f"global_step_{step}/data.pt")
    (folder / "latest_checkpointed_iteration.txt").write_text(str(step))
    return kept


def test_state_comes_back_from_verls_checkpoint(tmp_path):
    kept = saved(tmp_path, 7)
    assert latest_step(tmp_path) == tmp_path / "global_step_7"
    assert read_state(latest_step(tmp_path)) == kept.state


def test_the_run_that_saw_the_steps_is_remembered():
    mine = kept_state(run_id="r2")
    mine.load_state_dict(kept_state(run_id="r1").state_dict())
    assert mine.run_id == "r1"


def test_the_newest_checkpoint_of_the_same_parameters_stays_alone(tmp_path):
    saved(tmp_path, 3)
    saved(tmp_path, 4)
    (tmp_path / "global_step_5").mkdir()  # a kill came while it was written
    find_resume_point(tmp_path, recipe())
    assert [folder.name for folder in tmp_path.glob("global_step_*")] == ["global_step_4"]


def test_a_checkpoint_of_other_parameters_is_removed_before_verl_sees_it(tmp_path):
    saved(tmp_path / "resume", 3, fingerprint="other")
    find_resume_point(tmp_path / "resume", recipe())
    assert not (tmp_path / "resume").exists()


@pytest.mark.parametrize("damage", ["empty marker", "no state", "cut state", "other state"])
def test_a_damaged_checkpoint_does_not_block_the_stage_for_ever(tmp_path, damage):
    folder = tmp_path / "resume"
    saved(folder, 3)
    state = folder / "global_step_3/data.pt"
    match damage:
        case "empty marker":
            (folder / "latest_checkpointed_iteration.txt").write_text("")
        case "no state":
            state.unlink()
        case "cut state":
            state.write_bytes(state.read_bytes()[:100])
        case "other state":
            torch.save({"state": "{}", "processes": "1 of fsdp2"}, state)
    find_resume_point(folder, recipe())
    assert not folder.exists()


def test_another_number_of_processes_is_refused_with_both_named_and_nothing_lost(tmp_path):
    saved(tmp_path, 3)
    with pytest.raises(CheckpointError, match=r"saved by 1 of fsdp2 .* says 2 of fsdp2"):
        find_resume_point(tmp_path, recipe(nodes=2))
    assert latest_step(tmp_path).is_dir()


def test_no_checkpoint_is_nothing_to_find_and_an_error_at_the_end(tmp_path):
    find_resume_point(tmp_path, recipe())
    with pytest.raises(CheckpointError, match="no whole checkpoint"):
        latest_step(tmp_path)


# ── export ──


@pytest.mark.parametrize("place", ["actor/huggingface", "actor/model/huggingface"])
def test_a_change_too_small_for_bfloat16_survives_the_export(tmp_path, place):
    source, target = tmp_path / "global_step_1" / place, tmp_path / "exported"
    source.mkdir(parents=True)
    target.mkdir()
    weights = load_file(BASE / "model.safetensors")
    name = next(name for name, weight in weights.items() if float(weight.flatten()[0].abs()) > 0.01)
    weights[name].view(-1)[0] += 2e-6
    save_file(weights, source / "model.safetensors")
    (source / "config.json").write_text('{"dtype": "bfloat16"}')  # as verl writes it
    save_model(tmp_path / "global_step_1", BASE, target)
    assert torch.equal(load_file(target / "model.safetensors")[name], weights[name])
    assert json.loads((target / "config.json").read_text())["dtype"] == "float32"
    assert (target / "tokenizer.json").is_file()


def test_a_checkpoint_without_weights_is_no_model(tmp_path):
    with pytest.raises(CheckpointError, match="no safetensors"):
        save_model(tmp_path, BASE, tmp_path)


# ── reports ──


def test_only_named_figures_are_translated():
    assert translate({"actor/ppo_kl": 0.0, "timing_s/gen": 1.5, "actor/unheard_of": 3.0}) == {
        "verl/policy_drift": 0.0,
        "seconds/rollout": 1.5,
    }
    assert len(set(NAMES.values())) == len(NAMES)


def test_an_unreachable_run_is_an_error_at_start(tmp_path):
    with pytest.raises(ParameterError, match="cannot be reached"):
        attach(f"sqlite:///{tmp_path}/mlflow.db", "0" * 32)


def test_rollouts_of_a_step_are_one_file(tmp_path):
    import pyarrow.parquet as pq

    question = tiny_items()[0].question
    rows = [row("1-0_0_0"), row("1-0_1_0", Verdict.UNSCORED)]
    episodes = episodes_of(rows, small_rl(batch_prompts=1, group_size=2))
    for _ in range(2):  # a step that is run again replaces its file
        write_rollouts(str(tmp_path), 1, episodes, [question], tiny_tokenizer())
    table = pq.read_table(tmp_path / "step-00001.parquet").to_pylist()
    assert [(line["verdict"], line["reward"]) for line in table] == [("correct", 1.0), ("unscored", None)]
    assert {line["question_id"] for line in table} == {question.id}
