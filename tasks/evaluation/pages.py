"""The report as one HTML file without anything from outside, and as Markdown beside its pictures."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape

from tasks.evaluation import charts
from tasks.evaluation.sections import Block, Fold, Picture, Report, Section
from tasks.evaluation.sources import Example
from tasks.evaluation.tables import Entry, Grid, words
from tasks.records import Question, Verdict

EXCERPT = 420  # characters of evidence shown with an example
MARKS = {Verdict.CORRECT: "✓", Verdict.WRONG: "✗", Verdict.UNSCORED: "?"}
SHADE = 42  # percent of the accent colour behind a score of 1
THEME = {
    charts.PAPER: "var(--card)",
    charts.TEXT: "var(--ink)",
    charts.SOFT: "var(--soft)",
    charts.GRID: "var(--line)",
    charts.EDGE: "var(--edge)",
    charts.INK: "var(--accent)",
    charts.FAINT: "var(--faint)",
}
CSS = """
:root { color-scheme: light dark; --ink: #0f172a; --soft: #475569; --line: #e2e8f0; --edge: #cbd5e1; --faint: #93c5fd;
  --back: #f8fafc; --card: #ffffff; --accent: #2563eb; --good: #15803d; --bad: #b91c1c; --unsure: #a16207; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e2e8f0; --soft: #a3b1c6; --line: #263347; --edge: #3d4d66; --faint: #34558c;
    --back: #0b1220; --card: #131c2e; --accent: #5b8def; --good: #4ade80; --bad: #f87171; --unsure: #facc15; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.55 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 28px; margin: 0 0 4px; letter-spacing: -0.02em; }
h2 { font-size: 19px; margin: 0 0 6px; }
p { margin: 4px 0 12px; color: var(--soft); max-width: 92ch; }
nav { display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 18px 0 0; font-size: 13.5px; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
section, .tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
section { padding: 20px 22px; margin-top: 20px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(220px, 1fr)); gap: 14px; }
.tile { border-left: 4px solid var(--accent); padding: 12px 16px; }
.tile b { display: block; font-size: 20px; letter-spacing: -0.01em; white-space: nowrap; }
.tile span { color: var(--soft); font-size: 13px; display: block; line-height: 1.4; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; margin: 6px 0 14px;
  font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 6px 7px; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; font-size: 12.5px; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; white-space: nowrap; }
td { white-space: nowrap; }
table.prose th, table.prose td { text-align: left; }
table.prose td { white-space: normal; overflow-wrap: break-word; }
td small { display: block; color: var(--soft); font-size: 11px; white-space: nowrap; }
svg, img { max-width: 100%; height: auto; display: block; margin: 8px auto; border-radius: 6px;
  font-family: system-ui, sans-serif; }
details { margin-top: 6px; }
summary { cursor: pointer; color: var(--accent); font-size: 14px; }
.example { border-top: 1px solid var(--line); padding: 12px 0; }
.example blockquote { margin: 8px 0; padding: 8px 12px; background: var(--back); color: var(--soft);
  border-left: 3px solid var(--edge); font-size: 13.5px; overflow-wrap: anywhere; }
.reply { display: grid; grid-template-columns: 74px 22px 1fr; gap: 6px; padding: 1px 0; font-size: 13.5px;
  font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
.correct { color: var(--good); } .wrong { color: var(--bad); } .unscored { color: var(--unsure); }
@media print { section { break-inside: avoid; } }
"""


def html_page(report: Report) -> str:
    """The whole report as one file."""
    links = "".join(f'<a href="#{_anchor(each)}">{escape(each.title)}</a>' for each in report.sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.title)}</title><style>{CSS}</style></head>\n<body><main>"
        f"<h1>{escape(report.title)}</h1><p>{escape(report.subtitle)}</p>"
        f'<div class="tiles">{"".join(_tile(*headline) for headline in report.headlines)}</div>\n<nav>{links}</nav>\n'
        f"{''.join(_html_section(each) for each in report.sections)}</main></body></html>\n"
    )


def markdown_page(report: Report) -> str:
    """The same in Markdown; its pictures are the files beside it."""
    headlines = [f"* **{value}** {markdown_text(text)} ({where})" for where, value, text in report.headlines]
    parts = [f"# {markdown_text(report.title)}", report.subtitle, "\n".join(headlines)]
    parts += [part for section in report.sections for part in _markdown_section(section)]
    return "\n\n".join(part for part in parts if part) + "\n"


# ── HTML ──


def _anchor(section: Section) -> str:
    return "-".join("".join(letter if letter.isalnum() else " " for letter in section.title.lower()).split())


def _tile(where: str, value: str, text: str) -> str:
    return f'<div class="tile"><span>{escape(where)}</span><b>{escape(value)}</b><span>{escape(text)}</span></div>'


def _html_section(section: Section) -> str:
    text = f"<p>{escape(section.text)}</p>" if section.text else ""
    blocks = "".join(_html_block(block) for block in section.blocks)
    return f'<section id="{_anchor(section)}"><h2>{escape(section.title)}</h2>{text}{blocks}</section>\n'


def _html_block(block: Block) -> str:
    match block:
        case Grid():
            return html_table(block)
        case Fold():
            return f"<details><summary>{escape(block.title)}</summary>{html_table(block.grid)}</details>"
        case Picture():
            return _html_picture(block)
        case Example():
            return _html_example(block)


def html_table(grid: Grid) -> str:
    """A grid in HTML, details below their values."""
    head = "".join(f"<th>{escape(name)}</th>" for name in grid.header)
    body = "".join(f"<tr>{''.join(_html_entry(entry) for entry in row)}</tr>" for row in grid.rows)
    kind = ' class="prose"' if grid.prose else ""
    return f'<div class="wide"><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _html_entry(entry: Entry) -> str:
    detail = f"<small>{escape(entry.detail)}</small>" if entry.detail else ""
    shade = "" if entry.level is None else f' style="{_shade(entry.level)}"'
    return f"<td{shade}>{escape(entry.value)}{detail}</td>"


def _shade(level: float) -> str:
    return f"background: color-mix(in srgb, var(--accent) {SHADE * level:.0f}%, transparent)"


def _html_picture(picture: Picture) -> str:
    if isinstance(picture.content, bytes):
        encoded = b64encode(picture.content).decode("ascii")
        return f'<img alt="{escape(picture.alt)}" src="data:image/png;base64,{encoded}">'
    drawing = picture.content[picture.content.index("<svg") :]
    for colour, variable in THEME.items():
        drawing = drawing.replace(colour, variable)
    return drawing.replace("<svg ", f'<svg role="img" aria-label="{escape(picture.alt)}" ', 1)


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


# ── Markdown ──


def _markdown_section(section: Section) -> Iterator[str]:
    yield f"## {section.title}"
    yield section.text
    for block in section.blocks:
        yield _markdown_block(block)


def _markdown_block(block: Block) -> str:
    match block:
        case Grid():
            return markdown_table(block)
        case Fold():
            title = markdown_text(block.title)
            return f"<details><summary>{title}</summary>\n\n{markdown_table(block.grid)}\n\n</details>"
        case Picture():
            return f"![{block.alt}]({block.file})"
        case Example():
            return _markdown_example(block)


def markdown_table(grid: Grid) -> str:
    """A grid in Markdown, details in brackets."""
    side = "---" if grid.prose else "---:"
    rows = [tuple(map(markdown_text, grid.header)), ("---", *(side for _ in grid.header[1:]))]
    rows += [tuple(markdown_text(entry.plain()) for entry in row) for row in grid.rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def markdown_text(text: str) -> str:
    """Foreign text on one line, without markup of its own."""
    escaped = "".join(f"\\{letter}" if letter in r"\`*_|<>[]#" else letter for letter in text)
    return " ".join(escaped.split())


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


# ── both ──


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


def _lettered(question: Question) -> Sequence[tuple[str, str]]:
    return list(zip("ABCDEFGHIJ", question.options, strict=False))
