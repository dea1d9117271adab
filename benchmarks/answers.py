"""Answer checks per second, beside math-verify: `python benchmarks/answers.py`.

The same replies, numbers and short LaTeX as models write them, are checked by our rules alone (no pair needs algebra),
by the whole checker (a tenth of the pairs needs algebra, in other processes), and by math-verify's `parse` and `verify`
as trainers call them, in this process. Then a batch in which 16 replies hang sympy: the time until each of the others
has its verdict, and until all have. math-verify's own time-outs are off in the comparison; with 16 that hang it is not
run, because nothing would end it.
"""

import argparse
import logging
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

from math_verify import parse, verify

from tasks.records import AnswerKind, Finish
from tasks.rewards.rules import Gold, check, check_many, submit

HUNG = 16
TOWER = r"\boxed{\frac{3^{\left(3^{\left(3^{\left(3^3\right)}\right)} - 2\right)} - 3}{8}}"
Pair = tuple[str, str]  # reply, gold


def plain_pairs(count: int, rng: random.Random) -> list[Pair]:
    """Replies that the rules decide, half of them wrong."""
    pairs = []
    for number in range(count):
        value = rng.randrange(10_000_000)
        gold = value if number % 2 else value + 1
        forms = (
            (f"Let us see. The answer is {value:,}.", f"{gold}"),
            (rf"<think>long ago</think> So we get $\boxed{{{value}}}$.", f"{gold}"),
            (rf"\boxed{{\frac{{{value}}}{{7}}}}", f"{gold}/7"),
            (f"The answer is {value / 100:.2f}%.", f"{gold / 100:.2f}%"),
            (rf"\boxed{{{value / 1000}}}", f"{gold / 1000}"),
        )
        pairs.append(forms[number % len(forms)])
    return pairs


def mixed_pairs(count: int, rng: random.Random) -> list[Pair]:
    """As `plain_pairs`, with algebra in a tenth."""
    pairs = plain_pairs(count, rng)
    for number in range(0, count, 10):
        power, more, root = rng.randrange(2, 30), rng.randrange(10_000), rng.randrange(2, 1000)
        pairs[number] = rng.choice(
            (
                (rf"\boxed{{2^{{{power}}} + {more}}}", str(2**power + more)),
                (rf"\boxed{{{root}\sqrt{{2}}}}", rf"\sqrt{{{2 * root * root}}}"),
            )
        )
    return pairs


def by_math_verify(pair: Pair) -> object:
    """What a trainer's reward function does with it."""
    reply, gold = pair
    return verify(parse(f"${gold}$", parsing_timeout=None), parse(reply, parsing_timeout=None), timeout_seconds=None)


def by_us(pair: Pair) -> object:
    """Our verdict."""
    return check(pair[0], Finish.FINISHED, Gold((pair[1],), AnswerKind.NUMBER))


def measured(name: str, pairs: Sequence[Pair], one: Callable[[Pair], object]) -> str:
    """A row of the table: checks per second and the quantiles of one check, in milliseconds."""
    one(pairs[0])  # imports, and the first worker
    times, cpu = [], time.process_time()
    for pair in pairs:
        started = time.perf_counter()
        one(pair)
        times.append(1000 * (time.perf_counter() - started))
    cpu = time.process_time() - cpu
    return row(name, len(pairs) / sum(times) * 1000, len(pairs) / cpu, times)


def row(name: str, rate: float, cpu_rate: float, times: Sequence[float]) -> str:
    """Format one line."""
    cuts = statistics.quantiles(times, n=100)
    return f"{name:<34}{rate:>12,.0f}{cpu_rate:>14,.0f}{cuts[49]:>12.3f}{cuts[98]:>12.3f}"


def under_hung_inputs(pairs: Sequence[Pair]) -> str:
    """`HUNG` replies that hang, first in the batch: when do the others have their verdicts?"""
    started = time.perf_counter()
    ends: dict[int, float] = {}
    futures = []
    for place, (reply, gold) in enumerate([(TOWER, "7")] * HUNG + list(pairs)):
        future = submit(reply, Finish.FINISHED, Gold((gold,), AnswerKind.NUMBER))
        future.add_done_callback(lambda _, place=place: ends.setdefault(place, time.perf_counter() - started))
        futures.append(future)
    reasons = Counter(future.result().reason.value for future in futures)
    others = sorted(end for place, end in ends.items() if place >= HUNG)
    return (
        f"{HUNG} of {len(futures)} hang: half of the others have a verdict after {statistics.median(others):.3f} s, "
        f"all after {others[-1]:.2f} s, the batch after {max(ends.values()):.1f} s ({dict(reasons)})"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=2000, help="replies per row (2000)")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # math-verify warns that its time-outs are off
    plain = plain_pairs(options.pairs, random.Random(0))
    mixed = mixed_pairs(options.pairs, random.Random(0))
    print(f"{'':<34}{'checks/s':>12}{'per CPU-s':>14}{'p50 ms':>12}{'p99 ms':>12}")
    print(measured("rules alone", plain, by_us), flush=True)
    print(measured("math-verify, same pairs", plain, by_math_verify), flush=True)
    print(measured("rules + algebra (one by one)*", mixed, by_us), flush=True)
    print(measured("math-verify, same pairs", mixed, by_math_verify), flush=True)
    batch = [(reply, Finish.FINISHED, Gold((gold,), AnswerKind.NUMBER)) for reply, gold in mixed]
    check_many(batch)  # starts the other workers
    started = time.perf_counter()
    check_many(batch)
    print(f"{'rules + algebra (check_many)*':<34}{options.pairs / (time.perf_counter() - started):>12,.0f}")
    print("* CPU time of this process only, not of the workers", flush=True)
    print(under_hung_inputs(mixed))


if __name__ == "__main__":
    sys.exit(main())
