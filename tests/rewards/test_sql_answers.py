"""A predicted SELECT is right by what it returns."""

import datetime as dt
from decimal import Decimal

import pytest

from tasks.corpus.columns import Column
from tasks.records import Finish
from tasks.rewards.reasons import Checked, Reason
from tasks.rewards.sql import compare_queries, examine_query
from tasks.synthesis.tables.engine import LockedTable

TABLE = LockedTable(
    [
        Column("city", "text", ("Rome", "Oslo", "Bern", "Bern")),
        Column("size", "integer", (5, 3, 3, None)),
        Column("rate", "decimal", (Decimal("0.50"), Decimal("0.10"), Decimal("0.20"), None)),
        Column("code", "text", ("5", "3", "3", "1")),
        Column("day", "date", (dt.date(2020, 1, 1), dt.date(2021, 1, 1), dt.date(2021, 1, 1), None)),
    ]
)
CITIES = "SELECT city FROM facts"
BY_SIZE = "SELECT city, size FROM facts WHERE size IS NOT NULL ORDER BY size"


@pytest.mark.parametrize(
    ("gold", "query", "reason"),
    [
        (CITIES, CITIES, Reason.EQUAL),
        (CITIES + ";", "select f.city as town from facts as f ;", Reason.EQUAL),
        (CITIES, CITIES + " ORDER BY city DESC", Reason.EQUAL),  # a bag: no order was asked for
        (CITIES, "SELECT DISTINCT city FROM facts", Reason.DIFFERENT),  # repetitions count
        ("SELECT DISTINCT city FROM facts", CITIES, Reason.DIFFERENT),
        (CITIES, "SELECT city, size FROM facts", Reason.DIFFERENT),
        (CITIES, CITIES + " WHERE 1 = 0", Reason.DIFFERENT),
        ("SELECT city, size FROM facts", "SELECT size, city FROM facts", Reason.DIFFERENT),  # columns by place
        # order, and ties in it
        (BY_SIZE, BY_SIZE + ", city", Reason.EQUAL),
        (BY_SIZE, BY_SIZE + ", city DESC", Reason.EQUAL),
        (BY_SIZE, BY_SIZE + " DESC", Reason.DIFFERENT),
        (BY_SIZE.replace("BY size", "BY 2"), BY_SIZE + ", city DESC", Reason.EQUAL),
        (BY_SIZE.replace("size FROM", "size AS n FROM").replace("BY size", "BY n"), BY_SIZE, Reason.EQUAL),
        (BY_SIZE + ", city", BY_SIZE + ", city DESC", Reason.DIFFERENT),
        ("SELECT city FROM facts ORDER BY day, rate", "SELECT city FROM facts ORDER BY rate", Reason.DIFFERENT),
        # types
        ("SELECT size FROM facts WHERE city = 'Rome'", "SELECT 5.0 FROM facts LIMIT 1", Reason.EQUAL),
        ("SELECT size FROM facts WHERE city = 'Rome'", "SELECT code FROM facts WHERE city = 'Rome'", Reason.DIFFERENT),
        ("SELECT rate FROM facts WHERE city = 'Rome'", "SELECT 1 / 2 FROM facts LIMIT 1", Reason.EQUAL),
        ("SELECT AVG(size) FROM facts", "SELECT SUM(size) / COUNT(size) FROM facts", Reason.EQUAL),
        ("SELECT AVG(size) FROM facts", "SELECT SUM(size) / COUNT(*) FROM facts", Reason.DIFFERENT),
        ("SELECT AVG(size) FROM facts", "SELECT 3.6667 FROM facts LIMIT 1", Reason.DIFFERENT),
        ("SELECT SUM(size) * 1000000000000 FROM facts", "SELECT SUM(size) * 1000000000000 + 1 FROM facts",
         Reason.DIFFERENT),
        ("SELECT size FROM facts WHERE code = '1'", "SELECT 0 FROM facts LIMIT 1", Reason.DIFFERENT),  # NULL is no 0
        ("SELECT size FROM facts WHERE code = '1'", "SELECT NULL FROM facts LIMIT 1", Reason.EQUAL),
        ("SELECT day FROM facts WHERE city = 'Rome'", "SELECT '2020-01-01' FROM facts LIMIT 1", Reason.DIFFERENT),
        # refused, faulty, too much
        (CITIES, "DROP TABLE facts", Reason.QUERY_FAILED),
        (CITIES, CITIES + "; DROP TABLE facts", Reason.QUERY_FAILED),
        (CITIES, "SELECT content FROM read_text('/etc/passwd')", Reason.QUERY_FAILED),
        (CITIES, "SELECT town FROM facts", Reason.QUERY_FAILED),
        (CITIES, "", Reason.QUERY_FAILED),
        (CITIES, "SELECT " + "(" * 5000, Reason.QUERY_FAILED),
        (CITIES, "SELECT a.city FROM facts a, facts b, facts c, facts d, facts e, facts f", Reason.QUERY_FAILED),
        # a gold statement that says nothing
        (CITIES + " WHERE 1 = 0", CITIES + " WHERE 1 = 0", Reason.NO_GOLD),
        ("SELECT town FROM facts", CITIES, Reason.NO_GOLD),
        ("", CITIES, Reason.NO_GOLD),
    ],
)  # fmt: skip
def test_by_what_it_returns(gold: str, query: str, reason: Reason) -> None:
    assert compare_queries(query, gold, TABLE) is reason


@pytest.mark.parametrize(
    ("reply", "finish", "expected"),
    [
        (f"```sql\n{CITIES};\n```", Finish.FINISHED, Checked(Reason.EQUAL, f"{CITIES};")),
        (f"```sql\nDROP\n```\n```sql\n{CITIES}\n```", Finish.FINISHED, Checked(Reason.EQUAL, CITIES)),
        (CITIES, Finish.FINISHED, Checked(Reason.NO_ANSWER)),
        (f"<think>\n```\n{CITIES}\n```", Finish.TRUNCATED, Checked(Reason.TRUNCATED)),
    ],
)
def test_replies(reply: str, finish: Finish, expected: Checked) -> None:
    assert examine_query(reply, finish, CITIES, TABLE) == expected
