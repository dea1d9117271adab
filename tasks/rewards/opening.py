"""Opens the judge that the parameters name, once it has told right answers from wrong ones."""

from pathlib import Path

from tasks.artifacts import WORK
from tasks.params import LocalExecution, Params
from tasks.rewards.judge import Judge
from tasks.rewards.judging.canaries import check_canaries

IN_THIS_PROCESS = LocalExecution(type="local", sampler="vllm")  # Ray would load the judge anew for every batch


def open_judge(params: Params, stage: str) -> Judge | None:
    """The judge of the section `judge`, with its memory in .work/<stage>/judge; None, the rule alone, where it is null.

    Its canaries (equivalence) are asked anew each time, past the memory: they also tell whether the server is there.

    Raises:
        UntrustedJudgeError: the judge does not answer, or not as it should.
        PipelineError: there is no key, or no such model, or the server refuses every request.
    """
    return open_judge_in(WORK / stage / "judge", params)


def open_judge_in(folder: Path, params: Params) -> Judge | None:
    """As `open_judge`, with the memory in `folder`, which processes of one machine may share."""
    settings = params.judge
    if settings is None:
        return None
    from tasks.generation.models import open_chat, remembered

    model = open_chat(settings, "judge", folder, IN_THIS_PROCESS, params.threads)
    check_canaries(Judge(model, alarm_share=1.0))
    return Judge(remembered(model, settings, folder), settings.alarm_share)
