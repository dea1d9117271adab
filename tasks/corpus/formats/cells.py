"""A typed value becomes the text of a cell, with all its digits."""

import datetime as dt
import json
from decimal import Decimal


def cell_text(value: object) -> str:
    """None is empty, dates are ISO 8601, lists and objects are JSON, bytes only say how many."""
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    if isinstance(value, float | Decimal):
        return _digits(Decimal(repr(value)) if isinstance(value, float) else value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat().removesuffix("T00:00:00")
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=cell_text)
    return str(value)


def _digits(number: Decimal) -> str:
    """Without an exponent, unless that alone would take a line."""
    return format(number, "f") if number.is_finite() and abs(number.adjusted()) < 40 else str(number)
