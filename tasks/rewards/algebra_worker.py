"""The program in which algebra runs: one JSON line in, one out. Run by path, without the project's modules.

It imports sympy once and forks; the child answers. The child may hang, eat memory or crash: the parent of the program
(tasks/rewards/algebra.py) kills it, and the program forks another within milliseconds. When that parent is gone, the
kernel ends a child that hangs, by a limit of CPU time renewed for every request, and the next child reads the end.
"""

import json
import os
import resource
import sys
import time
from typing import Any, TextIO

MEMORY = 2 * 1024**3  # bytes of address space
DIGITS = 40  # of an evaluation; expressions that agree in so many digits are simplified exactly


def main() -> None:
    """Fork children as long as they are killed; each says {"ready": its process id}."""
    replies, sys.stdout = sys.stdout, sys.stderr
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    is_equal("x + 1", r"1 + \frac{x}{1}", 0.0)  # imports and fills caches before the first deadline runs
    status = -1
    while status == -1 or os.WIFSIGNALED(status):
        child = os.fork()  # of one thread
        if not child:
            _answer_requests(replies)
            return
        status = os.waitpid(child, 0)[1]


def _answer_requests(replies: TextIO) -> None:
    """Answer {"gold", "answer", "tolerance", "seconds"} with {"equal": true | false} or {"error": …}, line by line."""
    _write(replies, {"ready": os.getpid()})
    for line in sys.stdin:
        request = json.loads(line)
        _limit_cpu(request["seconds"])
        reply: dict[str, Any]
        try:
            reply = {"equal": is_equal(request["gold"], request["answer"], request["tolerance"])}
        except Exception as error:  # also RecursionError and MemoryError
            reply = {"error": type(error).__name__}
        _write(replies, reply)


def is_equal(gold: str, answer: str, tolerance: float) -> bool:
    """Whether two LaTeX expressions are equal: numbers exactly, everything else as math-verify decides.

    A `tolerance` above 0, relative to the gold value, is for numbers of which one is a rounded decimal.
    """
    left, right = _parse(gold), _parse(answer)
    if left is None or right is None:
        return False
    if _is_number(left) and _is_number(right):
        return _same_number(left, right, tolerance)
    from math_verify import verify

    return bool(verify(left, right, float_rounding=DIGITS, numeric_precision=2 * DIGITS, timeout_seconds=None))


def _parse(latex: str) -> Any:
    """The expression, unevaluated where sympy allows; None when the text is no mathematics.

    Only the LaTeX grammar: math-verify's other reader goes through sympy's `parse_expr`, which calls `eval`.
    """
    from math_verify import LatexExtractionConfig, parse

    config = [LatexExtractionConfig(boxed_match_priority=-1)]
    found = parse(f"${latex}$", extraction_config=config, fallback_mode="no_fallback", parsing_timeout=None)
    return found[0] if found else None


def _is_number(value: Any) -> bool:
    from sympy import Expr

    return isinstance(value, Expr) and not value.free_symbols and value.is_number is True


def _same_number(left: Any, right: Any, tolerance: float) -> bool:
    """Without a tolerance: rationals exactly; others when they agree in `DIGITS` digits and their difference is 0."""
    from sympy import N, Rational, simplify

    left, right = left.doit(), right.doit()
    if not tolerance and isinstance(left, Rational) and isinstance(right, Rational):
        return bool(left == right)
    difference = N(left - right, DIGITS, maxn=10 * DIGITS)
    size = max(abs(N(left, DIGITS)), abs(N(right, DIGITS)))
    if tolerance:
        return bool(abs(difference) <= tolerance * abs(N(left, DIGITS)))
    if abs(difference) > size * 10 ** (2 - DIGITS):
        return False
    return bool(simplify(left - right) == 0 or left.equals(right))


def _limit_cpu(seconds: float) -> None:
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 2, hard))


def _write(stream: TextIO, reply: dict[str, Any]) -> None:
    stream.write(json.dumps(reply) + "\n")
    stream.flush()


if __name__ == "__main__":
    main()
