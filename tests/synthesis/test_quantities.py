from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.synthesis.quantities import read_date, read_quantity, vaguer


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("1947", date(1947, 1, 1), date(1947, 12, 31)),
        ("1947-02", date(1947, 2, 1), date(1947, 2, 28)),
        ("1948-02-29", date(1948, 2, 29), date(1948, 2, 29)),
        ("December 1947", date(1947, 12, 1), date(1947, 12, 31)),
        ("12 March 1947", date(1947, 3, 12), date(1947, 3, 12)),
        ("March 12, 1947", date(1947, 3, 12), date(1947, 3, 12)),
        ("１９４７年３月", date(1947, 3, 1), date(1947, 3, 31)),
    ],
)
def test_dates_are_intervals(text: str, first: date, last: date) -> None:
    found = read_date(text)
    assert found is not None
    assert (found.low, found.high) == (first.toordinal(), last.toordinal())


@pytest.mark.parametrize("text", ["", "1947-13", "1947-02-30", "in 1947", "47", "1947 BC", "March", "12/03/1947", "∞"])
def test_what_is_no_certain_date_is_none(text: str) -> None:
    assert read_date(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1947", ["the 20th century", "the 1940s", "the late 1940s"]),
        ("4 May 1811", ["the 19th century", "the 1810s", "the early 1810s"]),
        ("2005", ["the 21st century", "the years 2000 to 2009", "the years 2004 to 2006"]),
        ("12,345 people", ["between 10,000 and 20,000 people", "between 12,000 and 13,000 people"]),
        ("$1,250.5 million", ["between $1,000 and $2,000 million", "between $1,200 and $1,300 million"]),
        ("-1,250 m", ["between -2,000 and -1,000 m", "between -1,300 and -1,200 m"]),
        ("0.034", ["between 0.03 and 0.04"]),
        ("45%", ["between 40 and 50%"]),
        ("7", []),  # a range that begins with the number gives it away
        ("30", []),
        ("0", []),
        ("Paris", []),
    ],
)
def test_vaguer_ways_the_vaguest_first(text: str, expected: list[str]) -> None:
    assert [shown for shown, _ in vaguer(text)] == expected


@given(st.integers(1000, 2999).map(str) | st.decimals(-(10**9), 10**9, places=2).map(str) | st.text(max_size=12))
def test_every_vaguer_way_holds_the_value_and_each_is_narrower(text: str) -> None:
    exact, ways = read_quantity(text), [quantity for _, quantity in vaguer(text)]
    assert exact is not None or not ways
    for quantity in ways:
        assert exact is not None and quantity.low <= exact.low and exact.high <= quantity.high
    for wide, narrow in pairwise(ways):
        assert narrow.high - narrow.low < wide.high - wide.low
    assert all(shown != text for shown, _ in vaguer(text))


def test_units_keep_quantities_apart() -> None:
    found = [read_quantity(text) for text in ("1947", "1,947", "1947 km", "1947 kg")]
    assert all(one is not None for one in found)
    assert len({one.unit for one in found if one}) == 4
