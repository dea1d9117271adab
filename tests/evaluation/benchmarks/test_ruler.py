"""RULER: official files and scores, and our generator: as long as a limit allows, the same bytes for the same seed."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import InputError
from tasks.evaluation.benchmarks.base import Attempt, Score
from tasks.evaluation.benchmarks.ruler.asking import HOTPOT, SQUAD, read_questions
from tasks.evaluation.benchmarks.ruler.counting import FEWEST, frequent_puzzle
from tasks.evaluation.benchmarks.ruler.generate import main
from tasks.evaluation.benchmarks.ruler.ruler import RULER, official_score, robust_score
from tasks.evaluation.benchmarks.ruler.samples import Places, largest_size
from tasks.evaluation.benchmarks.ruler.series import Series, check_room
from tasks.evaluation.benchmarks.ruler.subtasks import NEEDLES, REPLY_TOKENS, WITHOUT_FILES, Material
from tasks.records import Finish

FIXTURE = Path(__file__).parent / "fixtures/ruler"
TEMPLATE_TOKENS = 3
SQUAD_FILE = {
    "data": [
        {
            "title": "Pier",
            "paragraphs": [
                {
                    "context": f"Paragraph {number} tells of pier {number}.",
                    "qas": [
                        {"question": f"Which pier is in {number}?", "answers": [{"text": f"pier {number}"}] * 2},
                        {"question": "Who?", "answers": [], "is_impossible": True},
                    ],
                }
                for number in range(6)
            ],
        }
    ]
}
HOTPOT_FILE = [
    {"question": f"q{n}", "answer": "yes", "context": [[f"Title {n}", ["One. ", "Two."]], [f"Other {n}", ["Three."]]]}
    for n in range(4)
]


class Words:
    """Counts words, and a template of three."""

    def count(self, text: str) -> int:
        return len(text.split())

    def prompt_length(self, content: str) -> int:
        return self.count(content) + TEMPLATE_TOKENS


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    folder = tmp_path_factory.mktemp("questions")
    (folder / "squad.json").write_text(json.dumps(SQUAD_FILE), "utf-8")
    (folder / "hotpot.json").write_text(json.dumps(HOTPOT_FILE), "utf-8")
    questions = [read_questions(folder / name) for name in ("squad.json", "hotpot.json")]
    essay = "A gull sat on the mast. It watched the nets. Nobody fed it! Why would they? ".split()
    return Material(essay, ["gull", "mast", "nets"], {one.name: one for one in questions})


def lines(name: str, material: Material, limit: int, samples: int = 2, seed: int = 0) -> list[dict[str, object]]:
    return [json.loads(line) for line in Series(name, material, Words(), limit, seed).lines(samples)]


# ── length ──


@given(
    st.lists(st.integers(0, 9), min_size=40, max_size=40), st.integers(0, 3), st.integers(0, 200), st.integers(0, 60)
)
def test_one_more_unit_never_fits(steps: list[int], smallest: int, room: int, guess: int) -> None:
    def length(size: int) -> int:  # any growth by 0 to 9 a unit, then by 1
        return 5 + sum(steps[:size]) + max(0, size - len(steps))

    limit = length(smallest) + room
    size = largest_size(length, limit, smallest, guess)
    assert size >= smallest and length(size) <= limit < length(size + 1)


@given(name=st.sampled_from([*WITHOUT_FILES, SQUAD, HOTPOT]), limit=st.integers(900, 5000), seed=st.integers(0, 99))
def test_samples_fill_the_limit(material: Material, name: str, limit: int, seed: int) -> None:
    series = Series(name, material, Words(), limit, seed)
    (line,) = series.lines(1)
    fields = json.loads(line)
    prompt = fields["input"] + fields["answer_prefix"]
    assert fields["length"] == len(prompt.split()) + REPLY_TOKENS[name]
    assert fields["length_w_model_temp"] == fields["length"] + TEMPLATE_TOKENS <= limit
    puzzle = series.puzzle(0)
    size = largest_size(lambda size: series.length(puzzle.at(size)), limit, puzzle.smallest, 0)
    assert series.length(puzzle.at(size)) <= limit < series.length(puzzle.at(size + 1))


def test_a_limit_too_short_names_the_subtasks(material: Material) -> None:
    series = [Series(name, material, Words(), 200, 0) for name in ("fwe", "niah_single_1", "cwe", "vt")]
    with pytest.raises(InputError, match=r"--length 200 is too short: .*cwe \d+, vt \d+ tokens") as error:
        check_room(series, samples=2)
    assert "niah_single_1" not in str(error.value)


# ── what is asked ──


@pytest.mark.parametrize("name", [*WITHOUT_FILES, SQUAD, HOTPOT])
def test_references_stand_in_the_input(material: Material, name: str) -> None:
    for fields in lines(name, material, 900):
        assert fields["outputs"]
        if name != HOTPOT:  # "yes"
            assert all(str(reference) in str(fields["input"]) for reference in fields["outputs"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [*WITHOUT_FILES, SQUAD])
def test_a_seed_gives_the_same_samples_and_another_one_others(material: Material, name: str) -> None:
    assert lines(name, material, 900) == lines(name, material, 900)
    assert lines(name, material, 900) != lines(name, material, 900, seed=1)
    assert lines(name, material, 900, samples=3)[:2] == lines(name, material, 900)


def test_one_needle_is_asked_for_in_the_singular(material: Material) -> None:
    (fields, _) = lines("niah_single_1", material, 600)
    text = str(fields["input"])
    assert text.startswith(
        "A special magic number is hidden within the following text. Make sure to memorize it. I will quiz you about "
        "the number afterwards.\n"
    )
    needle = next(line for line in text.split("\n") if line.startswith("One of the special magic numbers for "))
    key, _, value = needle.removeprefix("One of the special magic numbers for ").removesuffix(".").partition(" is: ")
    assert fields["outputs"] == [value] and len(value) == 7
    assert text.endswith(f"\nWhat is the special magic number for {key} mentioned in the provided text?")
    assert fields["answer_prefix"] == f" The special magic number for {key} mentioned in the provided text is"


def test_several_needles(material: Material) -> None:
    (fields, _) = lines("niah_multiquery", material, 600)
    text = str(fields["input"])
    assert text.startswith("Some special magic numbers are hidden within")
    assert text.count("One of the special magic numbers for ") == len(set(fields["outputs"])) == 4  # type: ignore[call-overload]
    assert ", and " in str(fields["answer_prefix"])
    (values, _) = lines("niah_multivalue", material, 600)
    assert len(set(values["outputs"])) == 4  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["niah_multikey_2", "niah_multikey_3"])
def test_the_key_asked_for_stands_once_among_others(material: Material, name: str) -> None:
    (fields, _) = lines(name, material, 600)
    context, _, asked = str(fields["input"]).rpartition("\n")
    key = asked.partition(" for ")[2].partition(" mentioned")[0]
    assert context.count(f" for {key} is: ") == 1 and context.count(" is: ") > 10


def test_a_chain_is_in_order_behind_a_worked_example(material: Material) -> None:
    (fields, _) = lines("vt", material, 900)
    example, _, asked = str(fields["input"]).rpartition("Memorize and track")
    names = [str(name) for name in fields["outputs"]]  # type: ignore[attr-defined]
    places = [asked.index(f"VAR {name} = ") for name in names]
    assert len(names) == 5 and places == sorted(places)
    assert example.count("VAR ") == 9 and not any(name in example for name in names)
    assert example.endswith("\n\n") and example.split()[-1] in example.partition("Answer")[0]


@pytest.mark.parametrize(("limit", "common", "other"), [(1500, 6, 1), (4096, 30, 3)])
def test_common_words_are_the_most_frequent(material: Material, limit: int, common: int, other: int) -> None:
    (fields, _) = lines("cwe", material, limit)
    listed = str(fields["input"]).rpartition("Below is")[2].partition("often.\n")[2].partition("\nQuestion")[0]
    counts = Counter(listed.split()[1::2])
    assert [counts[str(word)] for word in fields["outputs"]] == [common] * 10  # type: ignore[attr-defined]
    assert {count for word, count in counts.items() if word not in fields["outputs"]} == {other}  # type: ignore[operator]


@pytest.mark.parametrize("size", [FEWEST, FEWEST + 1, 80, 100, 123, 500, 5000])
def test_the_three_coded_words_are_beyond_doubt(size: int) -> None:
    sample = frequent_puzzle(4000, random.Random(0)).at(size)
    counts = Counter(sample.input.partition("coded words. ")[2].partition("\nQuestion")[0].split())
    ranked = [word for word, _ in counts.most_common(5)]
    assert ranked[0] == "..." and tuple(ranked[1:4]) == sample.outputs
    assert counts[ranked[3]] > counts.get(ranked[4] if len(ranked) > 4 else "", 0)


def test_evidence_is_always_shown(material: Material) -> None:
    for fields in lines(SQUAD, material, 600, samples=4):
        number = str(fields["outputs"][0]).split()[1]  # type: ignore[index]
        assert f"Paragraph {number} tells of pier {number}." in str(fields["input"])
        assert "Document 1:\nParagraph" in str(fields["input"])


@given(st.integers(0, 6), st.integers(0, 30), st.integers())
def test_places_keep_the_order_whatever_the_size(needles: int, size: int, seed: int) -> None:
    places = Places.draw(needles, random.Random(seed))
    marked = [f"n{index}" for index in range(needles)]
    merged = places.insert(marked, ["hay"] * size)
    assert [piece for piece in merged if piece != "hay"] == marked and len(merged) == needles + size


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "no readable JSON"),
        ('{"version": 2}', "has no 'data'"),
        ('{"data": []}', "holds no question"),
        ('[{"question": "q", "answer": "a", "context": ["x"]}]', "no list of titles"),
    ],
)
def test_files_that_hold_no_questions(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(content, "utf-8")
    with pytest.raises(InputError, match=said):
        read_questions(tmp_path / "q.json")


# ── files and scores ──


def test_official_files_are_read() -> None:
    first, second, asked = RULER.read(FIXTURE)
    assert [task.id for task in (first, second, asked)] == [
        "4096/niah_multikey_1/0",
        "4096/niah_multikey_1/1",
        "4096/qa_1/0",
    ]
    assert first.subset == "niah_multikey_1 | 4096" and first.gold == ("1234567",)
    raw = json.loads((FIXTURE / "4096/niah_multikey_1/validation.jsonl").read_text("utf-8").splitlines()[0])
    assert RULER.prompt(first) == raw["input"] + raw["answer_prefix"]
    assert first.question.startswith("What is the special magic number for calm-otter")
    assert asked.gold == ("Anna Holm", "Holm")


@pytest.mark.parametrize(
    ("folder", "fields", "said"),
    [
        ("poems", {"input": "a\nb", "outputs": ["x"]}, "names no subtask"),
        ("vt", {"input": "a\nb", "outputs": []}, "no reference"),
        ("vt", {"input": "a\nb", "outputs": [" "]}, "no reference"),
        ("vt", {"outputs": ["x"]}, "has no 'input'"),
    ],
)
def test_other_files_are_refused(folder: str, fields: dict[str, object], said: str, tmp_path: Path) -> None:
    path = tmp_path / folder / "validation.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps(fields), "utf-8")
    with pytest.raises(InputError, match=said):
        list(RULER.read(tmp_path))


@pytest.mark.parametrize(
    ("reply", "references", "any_of", "official", "robust"),
    [
        ("It is 1234567.", ["1234567"], False, 1.0, 1.0),
        ("1234567 and 7654321", ["1234567", "7654321", "1111111", "2222222"], False, 0.5, 0.5),
        ("It is 12345678.", ["1234567"], False, 1.0, 0.0),  # part of another number
        ("It is 1,234,567.", ["1234567"], False, 0.0, 1.0),
        ("1111111 2222222 1234567 3333333", ["1234567"], False, 1.0, 0.25),  # all that was seen
        ("ABCDE, fghij", ["ABCDE", "FGHIJ"], False, 1.0, 1.0),
        ("ABCDE FGHIJ KLMNO PQRST", ["ABCDE", "FGHIJ"], False, 1.0, 0.5),
        ("1. lamp 2. mast", ["lamp", "mast"], False, 1.0, 1.0),
        ("A brave-otters' lampshade", ["otter", "lamp"], False, 1.0, 0.0),
        ("I do not know", ["no", "none"], True, 1.0, 0.0),  # "not"
        ("Anna Holm built it", ["Anna Holm", "Holm"], True, 1.0, 1.0),
        ("Nobody", ["Anna Holm", "Holm"], True, 0.0, 0.0),
        ("", ["1234567"], False, 0.0, 0.0),
        ("12\x0034567", ["1234567"], False, 0.0, 0.0),
    ],
)
def test_scores(reply: str, references: list[str], any_of: bool, official: float, robust: float) -> None:
    assert official_score(reply, references, any_of) == official
    assert robust_score(reply, references, any_of) == robust


@pytest.mark.parametrize(
    ("reply", "finish", "score"),
    [
        ("<think>1234567?</think>7654321", Finish.FINISHED, Score(official=0.0, robust=0.0, answered=True)),
        ("<think>7654321</think>1234567", Finish.FINISHED, Score(official=1.0, robust=1.0, answered=True)),
        ("Could it be 1234567", Finish.TRUNCATED, Score(official=1.0, robust=0.0, answered=False)),  # or reasoning
    ],
)
def test_reasoning_is_no_answer(reply: str, finish: Finish, score: Score) -> None:
    task = next(iter(RULER.read(FIXTURE)))
    assert RULER.score([Attempt(task, reply, finish)], None) == [score]


# ── the command ──


def test_the_command_writes_what_the_benchmark_reads(tmp_path: Path) -> None:
    arguments = ["--length", "640", "--samples", "2", "--out", str(tmp_path), "--subtasks", *NEEDLES]
    main(arguments)  # counted with the tiny model's tokenizer, which spells words that it does not know
    tasks = list(RULER.read(tmp_path))
    assert len(tasks) == 16 and {task.subset for task in tasks} == {f"{name} | 640" for name in NEEDLES}
    first = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    assert all(json.loads(line)["length_w_model_temp"] <= 640 for data in first.values() for line in data.splitlines())
    main(arguments)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")} == first


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--length", "0"], "must be positive"),
        (["--length", "640", "--subtasks", "qa_1"], "no subtask 'qa_1'"),
        (["--length", "640", "--haystack", "no-such-folder"], "cannot be read"),
        (["--length", "64", "--subtasks", "vt"], "raise it, or name the others"),
    ],
)
def test_the_command_refuses(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--out", str(tmp_path / "out")])
    assert end.value.code == 2 and said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
