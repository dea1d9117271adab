"""Bytes become text: by byte order mark, by declaration, as UTF-8, or by a guess that is recorded."""

import codecs
import re
from dataclasses import dataclass
from pathlib import Path

from tasks.corpus.cleaning import clean
from tasks.errors import InputError

MARKS = (  # the longer first: UTF-32's begins like UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
WESTERN = "cp1252"  # also Latin-1: preferred where another reading is not better
GUESSES = [  # what files are really in; more candidates make more wrong guesses
    *(f"cp{number}" for number in range(1250, 1259)),
    *("koi8_r", "koi8_u", "cp932", "euc_jp", "gb18030", "big5", "cp949", "iso8859_2", "tis_620"),
]
SAMPLE = 2**18  # bytes that a guess looks at
BINARY_SHARE = 0.1  # of control characters; text has a stray one
GUESSED = "encoding guessed: "


@dataclass(frozen=True)
class Decoded:
    """A clean text, its encoding, whether that is a guess, and what cleaning changed (characters)."""

    text: str
    encoding: str
    guessed: bool
    replaced: int
    removed: int
    breaks: int

    @property
    def remarks(self) -> tuple[str, ...]:
        """A guess, to be listed."""
        return (f"{GUESSED}{self.encoding}",) if self.guessed else ()


def decode_file(path: Path, declared: re.Pattern[bytes] | None = None) -> Decoded:
    """Read a text file. `declared` finds the name of an encoding in its bytes.

    Raises:
        InputError: no encoding fits, it is empty, or its bytes are no text.
    """
    data = path.read_bytes()
    text, encoding, guessed = _decode(data, declared)
    cleaned = clean(text)
    if not cleaned.text:
        raise InputError("empty")
    if cleaned.removed > BINARY_SHARE * len(text) and cleaned.removed > 1:
        raise InputError(f"binary data ({cleaned.removed} of {len(text)} characters are control characters)")
    return Decoded(cleaned.text, encoding, guessed, cleaned.replaced, cleaned.removed, cleaned.breaks)


def _decode(data: bytes, declared: re.Pattern[bytes] | None) -> tuple[str, str, bool]:
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return _strict(data, encoding), encoding.removesuffix("-sig"), False
    wide = _wide(data)
    if wide is not None:
        return _strict(data, wide), wide, True
    name = _declared(data, declared)
    plain = _try(data, "utf-8")
    if plain is not None and (name is None or not data.isascii()):  # other text is not UTF-8 by chance
        return plain, "utf-8", False
    if name is not None and (text := _try(data, name)) is not None:
        return text, name, False
    encoding = _guess(data)
    return _strict(data, encoding), encoding, True


def _declared(data: bytes, declared: re.Pattern[bytes] | None) -> str | None:
    match = declared.search(data[:4096]) if declared is not None else None
    if match is None:
        return None
    try:
        name = codecs.lookup(match[1].decode("ascii")).name
    except LookupError:
        return None
    return WESTERN if name == "iso8859-1" else name  # as browsers do


def _wide(data: bytes) -> str | None:
    """UTF-16 without a mark: every second byte of Western text is zero."""
    sample = data[:SAMPLE]
    if len(sample) < 8 or len(data) % 2:
        return None
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    most = len(sample) // 2
    if odd > 0.6 * most and even < 0.1 * most:
        return "utf-16-le"
    return "utf-16-be" if even > 0.6 * most and odd < 0.1 * most else None


def _guess(data: bytes) -> str:
    from charset_normalizer import from_bytes

    guesses = from_bytes(data[:SAMPLE], cp_isolation=GUESSES)
    matches = [match for match in guesses if _try(data, match.encoding) is not None]
    if not matches:
        raise InputError("in no known encoding; save it as UTF-8")
    least = min(match.chaos for match in matches)
    western = next((match for match in matches if WESTERN in match.could_be_from_charset), None)
    best = matches[0]
    if western is not None and western.chaos <= least and western.coherence >= best.coherence:
        return WESTERN
    return str(best.encoding)


def _try(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _strict(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(f"not {encoding.upper().removesuffix('-SIG')} (byte {error.start})") from error
