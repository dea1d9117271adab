"""Function calls as a model writes them in Python's syntax: read from the syntax tree, never evaluated.

What counts as calls follows BFCL (bfcl_eval/model_handler/utils.py: default_decode_execute_prompting, ast_parse), which
hands operators to `eval`; here texts joined by "+" are joined, and a reply with any other operator is no call.
"""

import ast
import warnings
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Call:
    """A call by keywords. An argument may be a call itself."""

    name: str
    arguments: Mapping[str, object]

    def __str__(self) -> str:
        """The call in Python's syntax."""
        given = ", ".join(
            f"{name}={value if isinstance(value, Call) else repr(value)}" for name, value in self.arguments.items()
        )
        return f"{self.name}({given})"


def parse_calls(reply: str) -> tuple[Call, ...]:
    """The calls of a reply that is a list of calls, its brackets optional; () for anything else, prose above all.

    Arguments by position are dropped; a bare name, an index and a call without keywords are their own text: as in BFCL.
    """
    text = reply.strip("`\n ")
    text = text if text.startswith("[") else f"[{text}"
    text = text if text.endswith("]") else f"{text}]"
    try:
        with warnings.catch_warnings(action="ignore"):  # a model's "\d" is no fault of ours
            body = ast.parse(text, mode="eval").body
        return tuple(map(_call, body.elts)) if isinstance(body, ast.List) else ()
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):  # the last is a parser's deep nesting
        return ()


def _call(node: ast.expr) -> Call:
    if not isinstance(node, ast.Call):
        raise ValueError("no call")
    return Call(_dotted(node.func), {_name(keyword): _value(keyword.value) for keyword in node.keywords})


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Name):
        return node.id
    raise ValueError("no name of a function")


def _name(keyword: ast.keyword) -> str:
    if keyword.arg is None:
        raise ValueError("unpacked arguments")
    return keyword.arg


def _value(node: ast.expr | None) -> object:
    match node:
        case ast.List(elts=nodes):
            return [_value(each) for each in nodes]
        case ast.Tuple(elts=nodes):
            return tuple(_value(each) for each in nodes)
        case ast.Dict(keys=keys, values=values):
            return {_value(key): _value(value) for key, value in zip(keys, values, strict=True)}
        case ast.Call():
            return _call(node) if node.keywords else ast.unparse(node)
        case ast.Subscript():
            return ast.unparse(node)
    return _plain(node)


def _plain(node: ast.expr | None) -> object:
    match node:
        case ast.Constant(value=value):
            return "..." if value is Ellipsis else value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _joined(_value(left), _value(right))
        case ast.Name(id=name):
            return name
    raise ValueError("no plain value")


def _joined(left: object, right: object) -> str:
    if not isinstance(left, str) or not isinstance(right, str):
        raise ValueError("an operator that is not evaluated")
    return left + right
