"""Asking: exact windows, chunk by chunk, conversations; a killed run goes on, with the same bytes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tasks.errors import InputError, ParameterError, UntrustedJudgeError
from tasks.evaluation.benchmarks import running
from tasks.evaluation.benchmarks.asking import Candidate, Exam, ask, check_room, exam_of
from tasks.evaluation.benchmarks.base import Attempt, Score, Task
from tasks.evaluation.benchmarks.conversation import Conversations, Message
from tasks.evaluation.benchmarks.interactive import Model, Played
from tasks.evaluation.benchmarks.longbench_v2 import LONGBENCH_V2
from tasks.evaluation.benchmarks.registry import ENTRIES, Entry, entry_of
from tasks.evaluation.benchmarks.replies import Journal, path_of, read_run
from tasks.evaluation.benchmarks.running import Planned, check_judge, examine, plan
from tasks.generation.base import Completion, Generator, Sampling
from tasks.generation.scripted import ScriptedGenerator
from tasks.params import Params
from tasks.progress import meter
from tasks.records import Finish
from tasks.rewards.judge import Judge
from tasks.tokenization import ChatTokenizer
from tasks.truncation import middle_truncate
from tests.evaluation.benchmarks.judges import judge_that

FIXTURES = Path(__file__).parent / "fixtures"
RIGHT = "The correct answer is (B)."


class Plain:
    """A benchmark whose prompt is its context and question."""

    name: ClassVar = "plain"
    source: ClassVar = "here"

    def __init__(self, *tasks: Task) -> None:
        self._tasks = tasks

    def read(self, folder: Path) -> Iterator[Task]:
        del folder
        return iter(self._tasks)

    def prompt(self, task: Task) -> str:
        return f"{task.context} {task.question}"

    def score(self, attempts: Sequence[Attempt[Task]], judge: Judge | None) -> list[Score]:
        del judge
        return [_right(attempt.reply == attempt.task.gold[0]) for attempt in attempts]


class Spoken(Plain):
    """The same as a conversation of one turn, whose reply is the question with the seed."""

    name: ClassVar = "spoken"

    def play(self, tasks: Sequence[Task], model: Model, seed: int) -> list[Played[Task]]:
        assert model.sampling.samples == 1
        return [Played(Attempt(task, f"{task.question} {seed}", Finish.FINISHED), 3, 5) for task in tasks]


def _right(right: bool) -> Score:
    return Score(official=float(right), robust=float(right), answered=True)


def task(name: str, context: str = "w1 w2", question: str = "w3") -> Task:
    return Task(id=name, context=context, question=question, instruction="w39", gold=("yes",))


@pytest.fixture
def exam(params: Params) -> Exam:
    memory = params.memory.model_copy(update={"chunk_tokens": 4, "memory_tokens": 4, "plan_tokens": 2, "window": 80})
    return Exam("truncation", 7, Sampling(0.7, 0.95, 5, samples=2), memory, seed=0, judge=None)


def candidate(generator: Generator, tokenizer: ChatTokenizer, sha256: str = "abc") -> Candidate:
    return Candidate("stage4", sha256, generator, tokenizer)


@pytest.mark.parametrize("window", [6, 7, 8])
def test_the_middle_of_the_prompt_is_cut_in_ids(tokenizer: ChatTokenizer, exam: Exam, window: int) -> None:
    generator = ScriptedGenerator(["yes", "no"])
    long = task("a", " ".join(f"w{number}" for number in range(9)), "w30")
    ((first, second),) = ask(Plain(long), [long], candidate(generator, tokenizer), replace(exam, window=window))
    ids = tokenizer.encode(Plain().prompt(long))
    assert len(ids) == 10
    kept = [*ids[: window // 2], *ids[-(window - window // 2) :]]
    assert len(kept) == window
    assert list(generator.prompts[0]) == tokenizer.wrap(kept)
    assert (first.text, second.text, first.cut) == ("yes", "no", True)
    assert first.input_tokens == tokenizer.prompt_length(Plain().prompt(long)), "of the whole prompt"
    assert first.output_tokens == 3


class InTurns(Plain):
    """The same task as a conversation."""

    def turns(self, task: Task) -> list[Message]:
        return [Message("user", task.context), Message("assistant", "w8"), Message("user", task.question)]


@pytest.mark.parametrize(("window", "cut"), [(40, False), (3, True)])
def test_a_conversation_goes_out_in_turns_where_it_fits(
    tokenizer: ChatTokenizer, exam: Exam, window: int, cut: bool
) -> None:
    generator = ScriptedGenerator(["yes", "no"])
    short = task("a", "w1 w2 w3", "w4")
    ((said, _),) = ask(InTurns(short), [short], candidate(generator, tokenizer), replace(exam, window=window))
    text = tokenizer.encode(InTurns().prompt(short))
    turns = Conversations(tokenizer).ids(InTurns().turns(short))
    assert list(generator.prompts[0]) == (tokenizer.wrap(middle_truncate(text, window)) if cut else turns)
    assert said.cut is cut


def test_a_prompt_that_fits_is_left_alone(tokenizer: ChatTokenizer, exam: Exam) -> None:
    generator = ScriptedGenerator(["yes", "no"])
    short = task("a")
    ((said, _),) = ask(Plain(short), [short], candidate(generator, tokenizer), replace(exam, window=3))
    assert list(generator.prompts[0]) == tokenizer.prompt_ids("w1 w2 w3")
    assert not said.cut


def test_the_agent_reads_all_and_sees_the_form_last(tokenizer: ChatTokenizer, exam: Exam) -> None:
    update = "<memory> w5 </memory> <plan> w6 </plan>"
    generator = ScriptedGenerator([update, update, update, update, "yes", "no"])  # two chunks, two samples
    long = task("a", "w1 w1 w1 w1 w2 w2 w2 w2")
    ((first, second),) = ask(Plain(long), [long], candidate(generator, tokenizer), replace(exam, way="agent"))
    assert (first.text, second.text) == ("yes", "no")
    assert (first.input_tokens, first.cut) == (8, False)
    assert first.output_tokens == 2 * len(update) + len("yes")
    (form,) = tokenizer.encode("w39")
    assert [form in prompt for prompt in generator.prompts] == [False] * 4 + [True] * 2


def test_a_question_without_a_text_is_asked_as_it_is(tokenizer: ChatTokenizer, exam: Exam) -> None:
    generator = ScriptedGenerator(["yes", "no"])
    bare = task("a", context="")
    ask(Plain(bare), [bare], candidate(generator, tokenizer), replace(exam, way="agent"))
    assert [list(prompt) for prompt in generator.prompts] == [tokenizer.prompt_ids(Plain().prompt(bare))]


def test_conversations_are_held_once_a_sample(tokenizer: ChatTokenizer, exam: Exam) -> None:
    tasks = [task("a"), task("b", question="w4")]
    said = ask(Spoken(*tasks), tasks, candidate(ScriptedGenerator([]), tokenizer), replace(exam, way="agent"))
    (a1, a2), (b1, _) = said
    assert a1.text.startswith("w3 ") and b1.text.startswith("w4 ")
    assert a1.text != a2.text, "each sample has a seed of its own"
    assert (a1.input_tokens, a1.output_tokens, a1.cut) == (3, 5, False)


class Dies(ScriptedGenerator):
    """Answers so many calls, then the process ends."""

    def __init__(self, calls: int) -> None:
        super().__init__(["yes"] * 100)
        self.left = calls

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int | Sequence[int]
    ) -> list[list[Completion]]:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return super().generate(prompts, sampling, seed)


@pytest.mark.parametrize("way", ["truncation", "agent"])
def test_what_was_answered_is_not_asked_again(
    scratch: Path, tokenizer: ChatTokenizer, exam: Exam, monkeypatch: pytest.MonkeyPatch, way: Any
) -> None:
    monkeypatch.setattr(running, "TASKS_PER_CALL", 1)
    planned = Planned(Entry(Plain(task("a"), task("b"), task("c")), ""), scratch, "s", 3)
    exam, journal = replace(exam, way=way), Journal(scratch / "replies.sqlite")

    def score(generator: ScriptedGenerator, sha256: str = "abc") -> Path:
        with meter("test", 3) as progress:
            one = candidate(generator, tokenizer, sha256)
            return running._score(planned, one, exam, journal, None, progress)

    each = 1 if way == "truncation" else 2  # calls a task: the agent's chunk and answer
    with pytest.raises(KeyboardInterrupt):
        score(Dies(2 * each))
    assert not list(scratch.glob("data/benchmarks/*.parquet")), "no half of a result"
    rest = Dies(9)
    path = score(rest)
    assert rest.left == 9 - each, "the third task alone"
    again = path.read_bytes()
    nothing = Dies(0)
    assert score(nothing).read_bytes() == again
    score(whole := Dies(9), sha256="another training")
    assert whole.left == 9 - 3 * each


def test_a_run_and_its_replies_are_read_back(scratch: Path, model_folder: Path, params: Params) -> None:
    limits = params.evaluation.benchmarks.model_copy(update={"max_input_tokens": 60, "samples": 2})
    (planned,) = plan(["longbench_v2"], FIXTURES)
    replies = [RIGHT, "No.", Completion((1, 2), "<think>The correct answer is (C)", Finish.TRUNCATED), *[""] * 3]
    with meter("test", planned.tasks) as progress:
        (path,) = examine(
            model_folder, "m", ScriptedGenerator(replies), [planned], exam_of(params, limits), None, progress
        )
    run, rows = read_run(path)
    assert path == path_of(run)
    assert (run.benchmark, run.checkpoint, run.window, run.samples, run.judge) == ("longbench_v2", "m", 60, 2, None)
    assert run.source.startswith("THUDM/LongBench-v2@2b48e49")
    assert [(row.task_id, row.sample, row.official, row.robust, row.answered) for row in rows[:3]] == [
        ("66f0a1", 0, 1.0, 1.0, True),
        ("66f0a1", 1, 0.0, 0.0, False),
        ("66f0a2", 0, 1.0, 0.0, False),
    ]
    assert (rows[2].finish, rows[2].output_tokens, rows[2].cut) == (Finish.TRUNCATED, 2, False)
    assert rows[0].text == "", "texts stay in the file"


def test_data_is_checked_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="there is no benchmark 'longbench'; known: longbench_v2"):
        plan(["longbench"], tmp_path)
    with pytest.raises(
        InputError, match=r"hf download --repo-type dataset --local-dir .*longbench_v2 THUDM/LongBench-v2"
    ):
        plan(["longbench_v2"], tmp_path)
    folder = tmp_path / "longbench_v2"
    folder.mkdir()
    with pytest.raises(InputError, match="holds no data"):
        plan(["longbench_v2"], tmp_path)
    (folder / "data.json").write_text("[]")
    with pytest.raises(InputError, match="holds no task"):
        plan(["longbench_v2"], tmp_path)
    twice = (FIXTURES / "longbench_v2/data.json").read_text().replace("66f0a2", "66f0a1")
    (folder / "data.json").write_text(twice)
    with pytest.raises(InputError, match="holds task 66f0a1 twice"):
        plan(["longbench_v2"], tmp_path)


def test_a_window_above_the_models_positions_is_refused(tokenizer: ChatTokenizer, exam: Exam) -> None:
    one = candidate(ScriptedGenerator([]), tokenizer)
    need = 7 + 2 + 5  # window, template, reply
    check_room(one, exam, need)
    check_room(one, exam, None)
    check_room(one, replace(exam, way="agent"), 1)
    with pytest.raises(ParameterError, match=f"has {need - 1} positions"):
        check_room(one, exam, need - 1)


def test_a_judge_is_tried_on_what_it_decides(capsys: pytest.CaptureFixture[str]) -> None:
    planned = [Planned(entry_of("frames"), FIXTURES, "s", 1)]
    judge, requests = judge_that(lambda _: "Verdict: CORRECT")
    with pytest.raises(UntrustedJudgeError, match="vital facts"):
        check_judge(judge, planned)
    requests.clear()
    check_judge(judge, [Planned(entry_of("longbench_v2"), FIXTURES, "s", 1)])
    assert not requests
    check_judge(None, planned)
    assert "unscored in frames" in capsys.readouterr().out


def test_batches_are_small_where_texts_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "TASKS_PER_CALL", 2)
    monkeypatch.setattr(running, "CHARACTERS_PER_CALL", 10)
    tasks = [task(str(size), "x" * size) for size in (3, 3, 3, 9, 30, 1)]
    sizes = [[len(one.context) for one in batch] for batch in running._batches(Plain(*tasks), Path())]
    assert sizes == [[3, 3], [3], [9], [30], [1]]
    (whole,) = running._batches(Spoken(*tasks), Path())
    assert len(whole) == 6, "conversations may share what they begin with"


def test_every_benchmark_has_a_name_of_its_own() -> None:
    names = [entry.benchmark.name for entry in ENTRIES]
    assert len(set(names)) == len(names)
    assert entry_of("longbench_v2").benchmark is LONGBENCH_V2
