"""Ask a question of a text of any length: `python -m tasks.memory.answer --file F --question "Who …?"`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from tasks.cli import one_line_errors
from tasks.errors import InputError
from tasks.params import Params, load_params


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; input that cannot be used ends it with one line on stderr and code 2."""
    options = _parser().parse_args(arguments)
    with one_line_errors():
        params = load_params(options.params, tuple(options.set))
        question = options.question.strip()
        if not question:
            raise InputError("--question is empty; ask something about the file")
        print(answer(_read(options.file), question, options.model, params))


def answer(text: str, question: str, model: Path, params: Params) -> str:
    """Read `text` chunk by chunk, printing the memory after each chunk; return the final reply."""
    from tasks.generation.base import Sampling
    from tasks.generation.models import open_generator
    from tasks.memory.agent import Progress, open_question, run_agent
    from tasks.tokenization import ChatTokenizer

    def show(progress: Progress) -> None:
        print(f"[{progress.chunk}/{progress.chunks}] memory: {progress.state.memory}")
        print(f"    plan: {progress.state.plan}", flush=True)

    tokenizer = ChatTokenizer.load(model)
    generator = open_generator(model, params.execution, params.threads)
    greedy = Sampling(temperature=0.0, top_p=1.0, max_new_tokens=params.rl.stages["stage4"].max_output_tokens)
    (run,) = run_agent(
        generator, tokenizer, [(text,)], [open_question("user", question)], params.memory, greedy, params.seed, show
    )
    if run.unparsed:
        print(f"{run.unparsed} of {len(run.states)} updates were unreadable; the memory before them was kept")
    return run.reply


def _read(path: Path) -> str:
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 at byte {error.start}; convert it, e.g. with iconv") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; give a text file with --file") from error
    if not text.strip():
        raise InputError(f"{path} holds no text; give a file with something to read")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tasks.memory.answer",
        description="Answer a question about a text far longer than the model's window, chunk by chunk.",
    )
    parser.add_argument("--file", type=Path, required=True, help="UTF-8 text to read")
    parser.add_argument("--question", required=True)
    parser.add_argument("--model", type=Path, default=Path("checkpoints/stage4"), help="HF model folder")
    parser.add_argument("--params", type=Path, default=Path("params.yaml"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="set a parameter")
    return parser


if __name__ == "__main__":
    main()
