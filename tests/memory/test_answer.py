"""The user's command: clear refusals, and a whole pass with a tiny untrained model."""

import subprocess
import sys
from pathlib import Path

import pytest

from tasks.memory.answer import main

ROOT = Path(__file__).parents[2]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--params", str(ROOT / "params.yaml")])
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text("The capital of France is Paris. " * 40, "utf-8")
    return path


def test_a_missing_file_is_named(capsys, tmp_path):
    missing = str(tmp_path / "no.txt")
    assert missing in refused(capsys, "--file", missing, "--question", "Who?")


def test_a_folder_is_no_file(capsys, tmp_path):
    assert str(tmp_path) in refused(capsys, "--file", str(tmp_path), "--question", "Who?")


@pytest.mark.parametrize(("content", "reason"), [(b"\xff\xfe", "UTF-8"), (b"", "no text"), (b" \n", "no text")])
def test_unusable_content_is_explained(capsys, tmp_path, content, reason):
    path = tmp_path / "f.txt"
    path.write_bytes(content)
    assert reason in refused(capsys, "--file", str(path), "--question", "Who?")


def test_an_empty_question_is_refused(capsys, book):
    assert "--question" in refused(capsys, "--file", str(book), "--question", " ")


def test_a_missing_model_is_named(capsys, book, tmp_path):
    model = str(tmp_path / "model")
    assert model in refused(capsys, "--file", str(book), "--question", "Who?", "--model", model)


def test_an_unknown_parameter_is_refused(capsys, book):
    arguments = ("--file", str(book), "--question", "Who?", "--set", "memory.chunk=1")
    assert "chunk_tokens" in refused(capsys, *arguments)


def test_help_loads_no_heavy_library():
    code = (
        "import sys; from tasks.memory.answer import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'transformers', 'mlflow'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)


def test_a_tiny_model_reads_chunk_by_chunk(capsys, book, tmp_path):
    torch = pytest.importorskip("torch")
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from tasks.base_model.vocabulary import build_tokenizer
    from tasks.corpus.countries import load_countries

    torch.manual_seed(0)
    tokenizer = build_tokenizer(load_countries())
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=64,
        tie_word_embeddings=True,
        max_position_embeddings=1024,
    )
    Qwen3ForCausalLM(config).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    options = {
        "--file": str(book),
        "--question": "What is the capital of France?",
        "--model": str(tmp_path / "model"),
        "--params": str(ROOT / "params.yaml"),
        "--set": "rl.stages.stage4.max_output_tokens=4",
    }
    main([word for pair in options.items() for word in pair])
    printed = capsys.readouterr().out
    assert "[1/" in printed
    assert "memory: none" in printed
    assert "unreadable" in printed
