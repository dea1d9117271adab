"""The judge that the parameters name: trusted before it is used, remembered, or not there at all."""

from pathlib import Path

import pytest

from tasks.errors import CheckpointError, ParameterError, PipelineError, UntrustedJudgeError
from tasks.params import EndpointJudge, Params, VllmJudge, load_params
from tasks.records import AnswerKind, Finish, Verdict
from tasks.rewards.judging.verdicts import verdict_of
from tasks.rewards.opening import open_judge
from tasks.rl.engines.verl.config import check_reach
from tests.conftest import CHECKOUT
from tests.rewards.judge_server import serving, settings
from tests.rewards.judges import asked

CANARIES = 23


def judged_by(params: Params, judge: EndpointJudge | VllmJudge) -> Params:
    return params.model_copy(update={"judge": judge})


def test_null_is_the_rule_alone(params: Params, scratch: Path) -> None:
    assert params.judge is None and open_judge(params, "rl-stage1") is None
    assert not (scratch / ".work").exists()


def test_canaries_first_then_every_question_once_also_over_a_restart(params: Params, scratch: Path) -> None:
    with serving() as server:
        served = judged_by(params, settings(server.server_port))
        for restart in (1, 2):
            judge = open_judge(served, "rl-stage1")
            assert judge and server.served == restart * CANARIES + (restart == 2)  # asked anew: is the server there?
            assert judge.counts()["asked"] == 0  # canaries do not count
            reply = "The answer is a town by the sea"
            assert verdict_of(asked(AnswerKind.TEXT, "Bergen"), reply, Finish.FINISHED, judge) is Verdict.WRONG
            assert judge.counts()["cached"] == restart - 1
    assert (scratch / ".work/rl-stage1/judge/replies.sqlite").is_file()


def test_a_judge_out_of_reach_ends_the_stage_before_it_starts(params: Params, scratch: Path) -> None:
    with serving() as server:
        server.healthy = 0
        with pytest.raises(UntrustedJudgeError, match="no verdict on 23 of 23 answers"):
            open_judge(judged_by(params, settings(server.server_port)), "rl-stage1")


@pytest.mark.parametrize(("status", "said"), [(404, "judge.base_url .* and judge.model"), (400, "check judge")])
def test_a_refusal_names_the_judges_section(params: Params, scratch: Path, status: int, said: str) -> None:
    with serving() as server:
        server.healthy, server.status = 0, status
        with pytest.raises(PipelineError, match=said):
            open_judge(judged_by(params, settings(server.server_port)), "s")


def test_so_do_a_missing_key_a_spent_budget_and_a_missing_model(params: Params, scratch: Path) -> None:
    far = settings(1).model_copy(update={"base_url": "https://judge.example/v1"})
    with pytest.raises(ParameterError, match=r"^judge\.key_variable = 'NO_SUCH_KEY'"):
        open_judge(judged_by(params, far), "s")
    dear = settings(1).model_copy(update={"output_price": 1e6, "budget": 0.01})
    with pytest.raises(PipelineError, match=r"of judge\.budget = 0\.01"):
        open_judge(judged_by(params, dear), "s")
    gone = VllmJudge(type="vllm", model=Path("none"), context_tokens=64, max_output_tokens=8, alarm_share=0.1)
    with pytest.raises(CheckpointError, match=r"^judge\.model = none does not exist"):
        open_judge(judged_by(params, gone), "s")


RAY = "execution={type: ray, sampler: torch, address: null, workers: 2, gpus_per_worker: 0}"
VLLM = "judge={type: vllm, model: m, context_tokens: 64, max_output_tokens: 8, alarm_share: 0.1}"


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        (("judge={type: grammar}",), ["judge", "'openai', 'vllm'"]),
        ((VLLM.replace("vllm", "transformers"),), ["judge", "'openai', 'vllm'"]),
        ((VLLM.replace(", alarm_share: 0.1", ""),), ["alarm_share is missing"]),
        ((VLLM.replace("8", "40"),), ["max_output_tokens = 40 takes more than half"]),
        ((VLLM, "rl.engine=verl"), ["judge.type = vllm", "rl.engine = verl", "serve it (vllm serve)", "type: openai"]),
        ((VLLM, RAY), ["judge.type = vllm", "execution.type = ray", "serve it (vllm serve)"]),
    ],
)
def test_an_impossible_judge_is_refused_by_name(overrides: tuple[str, ...], named: list[str]) -> None:
    with pytest.raises(ParameterError) as caught:
        load_params(CHECKOUT / "params.yaml", overrides)
    for part in named:
        assert part in str(caught.value)


def test_a_judge_on_loopback_is_none_for_other_machines(params: Params) -> None:
    two = params.model_copy(update={"cluster": params.cluster.model_copy(update={"nodes": 2})})
    with pytest.raises(ParameterError, match=r"judge\.base_url = http://127.0.0.1:1/v1 .* cluster\.nodes = 2"):
        check_reach(judged_by(two, settings(1)))
    check_reach(judged_by(params, settings(1)))
    check_reach(judged_by(two, settings(1).model_copy(update={"base_url": "http://judge:8000/v1"})))
    check_reach(two)


def test_the_papers_judge() -> None:
    judge = load_params(CHECKOUT / "infra/profiles/qwen3-30b-a3b.yaml").judge
    assert isinstance(judge, EndpointJudge) and judge.model == "gpt-oss-120b"
