"""The report as one HTML file without anything from outside, and as Markdown."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape

from tasks.evaluation import charts, tables, wording
from tasks.evaluation.files import PICTURE
from tasks.evaluation.scores import Evaluation
from tasks.evaluation.sources import Example, Sources
from tasks.evaluation.tables import Entry, Grid, words
from tasks.filtering.funnel import Funnel
from tasks.params import Params
from tasks.records import Domain, Question, Split, Verdict

HELD_OUT: tuple[Split, ...] = ("development", "test")
PICTURE_TEXT = "All questions by domain, kept and dropped"
EXCERPT = 420  # characters of evidence shown with an example
MARKS = {Verdict.CORRECT: "✓", Verdict.WRONG: "✗", Verdict.UNSCORED: "?"}
CSS = """
:root { --ink: #0f172a; --soft: #475569; --line: #e2e8f0; --back: #f8fafc; --accent: #1d4ed8; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.55 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 28px; margin: 0 0 4px; letter-spacing: -0.02em; }
h2 { font-size: 19px; margin: 0 0 6px; }
p { margin: 4px 0 12px; color: var(--soft); max-width: 88ch; }
section, .tile { background: #fff; border: 1px solid var(--line); border-radius: 10px; }
section { padding: 20px 22px; margin-top: 20px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(230px, 1fr)); gap: 14px; }
.tile { border-left: 4px solid var(--accent); padding: 12px 16px; }
.tile b { display: block; font-size: 21px; letter-spacing: -0.01em; }
.tile span { color: var(--soft); font-size: 13px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; margin: 6px 0 12px;
  font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 6px 10px; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; font-size: 12.5px; }
th:first-child, td:first-child { text-align: left; white-space: nowrap; }
td small { display: block; color: var(--soft); font-size: 11.5px; white-space: nowrap; }
svg, img { max-width: 100%; height: auto; display: block; margin: 8px auto; font-family: system-ui, sans-serif; }
details { margin-top: 6px; }
summary { cursor: pointer; color: var(--accent); font-size: 14px; }
.example { border-top: 1px solid var(--line); padding: 12px 0; }
.example blockquote { margin: 8px 0; padding: 8px 12px; background: var(--back); color: var(--soft);
  border-left: 3px solid var(--line); font-size: 13.5px; }
.reply { display: grid; grid-template-columns: 74px 22px 1fr; gap: 6px; padding: 1px 0; font-size: 13.5px;
  font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
.correct { color: #15803d; } .wrong { color: #b91c1c; } .unscored { color: #a16207; }
"""


def html_page(sources: Sources, params: Params) -> str:
    """The whole report as one file."""
    evaluation = sources.evaluation
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(wording.title(params))}</title><style>{CSS}</style></head>\n<body><main>"
        f"<h1>{escape(wording.title(params))}</h1><p>{escape(wording.subtitle(evaluation))}</p>"
        f'<div class="tiles">{"".join(_tile(*headline) for headline in tables.headlines(evaluation))}</div>\n'
        f"{''.join(_html_sections(sources, params))}</main></body></html>\n"
    )


def _html_sections(sources: Sources, params: Params) -> Iterator[str]:
    evaluation, merge = sources.evaluation, sources.merge
    yield _section(
        "Held-out scores",
        wording.scores(evaluation),
        html_table(tables.by_length(evaluation)),
        charts.accuracy_by_length(evaluation),
    )
    yield _section(
        "By domain",
        "Mean of lengths.",
        html_table(tables.by_domain(evaluation)),
        *(_domain_details(evaluation, domain) for domain in Domain),
    )
    yield _section(
        "Reinforcement learning",
        wording.TRAINING,
        charts.training_curves(sources.curves, params.rl.entropy_control),
    )
    yield _section(
        "Documents longer than the window",
        wording.long_documents(evaluation),
        html_table(tables.long_documents(evaluation)),
        charts.long_documents(evaluation) if evaluation.long else "",
    )
    yield _section(
        "The merge",
        wording.merge(merge),
        html_table(tables.merge_weights(merge)),
        charts.merge_weights(merge),
    )
    yield _section(
        "Where the questions went",
        wording.funnel(sources.funnel),
        html_table(tables.training_funnel(sources.funnel, sources.balance)),
        *(_held_out_details(sources.funnel, split) for split in HELD_OUT),
        html_table(tables.balance(sources.balance)),
        _picture(sources.picture),
    )
    yield _section(
        "How the replies look",
        "To all held-out items; lengths and shares are of sampled replies.",
        html_table(tables.replies(evaluation)),
    )
    yield _section("Examples", wording.EXAMPLES, *(_html_example(example) for example in sources.examples))
    yield _section("Provenance", "", html_table(tables.provenance(evaluation.provenance)))


def markdown_page(sources: Sources, params: Params) -> str:
    """The report's tables; its pictures are in the HTML."""
    evaluation = sources.evaluation
    headlines = [f"* **{value}** {text} ({name})" for name, value, text in tables.headlines(evaluation)]
    parts = [
        f"# {wording.title(params)}",
        wording.subtitle(evaluation),
        "\n".join(headlines),
        "Curves and pictures: [report.html](report.html).",
        *_markdown_sections(sources),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_sections(sources: Sources) -> Iterator[str]:
    evaluation = sources.evaluation
    yield "## Held-out scores"
    yield wording.scores(evaluation)
    yield markdown_table(tables.by_length(evaluation))
    yield "## By domain"
    yield markdown_table(tables.by_domain(evaluation))
    yield "## Reinforcement learning"
    yield "From the first to the last tenth of each stage."
    yield markdown_table(tables.training(sources.curves))
    yield "## Documents longer than the window"
    yield wording.long_documents(evaluation)
    yield markdown_table(tables.long_documents(evaluation))
    yield "## The merge"
    yield wording.merge(sources.merge)
    yield markdown_table(tables.merge_weights(sources.merge))
    yield "## Where the questions went"
    yield wording.funnel(sources.funnel)
    yield markdown_table(tables.training_funnel(sources.funnel, sources.balance))
    for split in HELD_OUT:
        yield f"Held out, {split}:"
        yield markdown_table(tables.funnel(sources.funnel, split))
    yield markdown_table(tables.balance(sources.balance))
    yield f"![{PICTURE_TEXT}]({PICTURE.name})"
    yield "## How the replies look"
    yield markdown_table(tables.replies(evaluation))
    yield "## Examples"
    yield wording.EXAMPLES
    yield from (_markdown_example(example) for example in sources.examples)
    yield "## Provenance"
    yield markdown_table(tables.provenance(evaluation.provenance))


def html_table(grid: Grid) -> str:
    """A grid in HTML, details below their values."""
    head = "".join(f"<th>{escape(name)}</th>" for name in grid.header)
    body = "".join(f"<tr>{''.join(_html_entry(entry) for entry in row)}</tr>" for row in grid.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _html_entry(entry: Entry) -> str:
    detail = f"<small>{escape(entry.detail)}</small>" if entry.detail else ""
    return f"<td>{escape(entry.value)}{detail}</td>"


def markdown_table(grid: Grid) -> str:
    """A grid in Markdown, details in brackets."""
    rows = [grid.header, ("---", *("---:" for _ in grid.header[1:]))]
    rows += [tuple(markdown_text(entry.plain()) for entry in row) for row in grid.rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def markdown_text(text: str) -> str:
    """Foreign text on one line, without markup of its own."""
    escaped = "".join(f"\\{letter}" if letter in r"\`*_|<>[]#" else letter for letter in text)
    return " ".join(escaped.split())


def excerpt(example: Example) -> str:
    """A piece of the first evidence document, around the gold answer if it stands there."""
    question = example.item.question
    pairs = zip(example.item.document_ids, example.item.documents, strict=True)
    text = next((text for name, text in pairs if name in question.document_ids), "")
    found = min((place for gold in question.gold if (place := text.find(gold)) >= 0), default=0)
    start = max(0, min(found - EXCERPT // 2, len(text) - EXCERPT))
    piece = text[start : start + EXCERPT]
    return f"{'… ' if start else ''}{piece}{' …' if start + EXCERPT < len(text) else ''}"


def gold_text(question: Question) -> str:
    """The gold answer for people."""
    return ", ".join(question.gold) if question.gold else "none"


def _tile(name: str, value: str, text: str) -> str:
    return f'<div class="tile"><span>{escape(name)}</span><b>{escape(value)}</b><span>{escape(text)}</span></div>'


def _domain_details(evaluation: Evaluation, domain: Domain) -> str:
    table = html_table(tables.by_domain_and_length(evaluation, domain))
    return f"<details><summary>{escape(words(domain))} by length</summary>{table}</details>"


def _held_out_details(funnel: Funnel, split: Split) -> str:
    table = html_table(tables.funnel(funnel, split))
    return f"<details><summary>{escape(split)} questions</summary>{table}</details>"


def _picture(png: bytes) -> str:
    encoded = b64encode(png).decode("ascii")
    return f'<img alt="{escape(PICTURE_TEXT)}" src="data:image/png;base64,{encoded}">'


def _section(title: str, text: str, *blocks: str) -> str:
    paragraph = f"<p>{escape(text)}</p>" if text else ""
    return f"<section><h2>{escape(title)}</h2>{paragraph}{''.join(blocks)}</section>\n"


def _html_example(example: Example) -> str:
    question = example.item.question
    options = "".join(f" ({letter}) {escape(option)}" for letter, option in _lettered(question))
    replies = "".join(
        f'<div class="reply {reply.verdict}"><span>{escape(reply.checkpoint)}</span>'
        f"<span>{MARKS[reply.verdict]}</span><span>{escape(reply.text)}</span></div>"
        for reply in example.replies
    )
    return (
        f'<div class="example"><b>{escape(words(question.domain))}</b>, {example.item.length_bucket} tokens'
        f"<blockquote>{escape(excerpt(example))}</blockquote>"
        f"<div>{escape(question.question)}{options}<br>Gold: <b>{escape(gold_text(question))}</b></div>"
        f"{replies}</div>"
    )


def _markdown_example(example: Example) -> str:
    question = example.item.question
    options = "".join(f" ({letter}) {option}" for letter, option in _lettered(question))
    lines = [
        f"**{words(question.domain)}**, {example.item.length_bucket} tokens",
        f"> {markdown_text(excerpt(example))}",
        f"{markdown_text(question.question + options)} Gold: {markdown_text(gold_text(question))}",
        "\n".join(
            f"* {reply.checkpoint} {MARKS[reply.verdict]} {markdown_text(reply.text)}" for reply in example.replies
        ),
    ]
    return "\n\n".join(lines)


def _lettered(question: Question) -> Sequence[tuple[str, str]]:
    return list(zip("ABCDEFGHIJ", question.options, strict=False))
