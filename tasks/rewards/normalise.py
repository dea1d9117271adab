"""Text forms in which answers are compared."""

import re
import unicodedata

_DIGIT_OF_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_SUPERSCRIPTS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")
_VULGAR_FRACTIONS = re.compile("[¼-¾⅐-⅞]")
_LATEX_WRAPPER = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|operatorname)\s*\{([^{}]*)\}")
_LATEX_LAYOUT = re.compile(r"\\(?:left|right)(?![a-zA-Z])|\\[()\[\],;:! ]")
_LATEX_ESCAPE = re.compile(r"\\([%$#&_])")
_MATH_MODE = re.compile(r"\$([^$\n]+)\$")
_UNUSUAL = re.compile(r"[^\x00-\x7f]|[\\$*{`]")  # what `plain` may change
_LETTERS_AND_DIGITS = re.compile(r"[a-z0-9 ]*")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "−": "-", "⁄": "/", "`": None})
_ARTICLE = re.compile(r"\b(?:a|an|the)\s+(?=\S)")
_KEPT_PUNCTUATION = "%#&@"  # "5%" is not "5", "C#" is not "C"
_WITHIN_NUMBER = re.compile(r"(?<=\d)[.:/-](?=\d)|(?<![\w.])-(?=\d)")


def plain(text: str) -> str:
    """One spelling for what typography and LaTeX write in many: NFKC, no math mode, ASCII quotes."""
    if not _UNUSUAL.search(text):
        return text
    text = _SUPERSCRIPTS.sub(lambda match: "^" + match[0].translate(_DIGIT_OF_SUPERSCRIPT), text)
    text = _VULGAR_FRACTIONS.sub(lambda match: " " + match[0], text)  # "1½" is not 11/2
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    text = _LATEX_WRAPPER.sub(r"\1", text.replace("**", "").replace("{,}", ","))
    text = _LATEX_LAYOUT.sub("", text)
    return _LATEX_ESCAPE.sub(r"\1", _MATH_MODE.sub(r"\1", text))


def normalise(text: str) -> str:
    """SQuAD's normal form, made safe: lower case, no punctuation, no articles, single spaces.

    Unlike SQuAD's, signs and separators inside numbers stay ("3.5" is not "35"), dashes between words become
    spaces, and an article goes only before another word: "A" and "Vitamin A" keep theirs. Empty when nothing
    is left.
    """
    text = plain(text).casefold()
    if not _LETTERS_AND_DIGITS.fullmatch(text):
        text = _unpunctuated(text)
    return " ".join(_ARTICLE.sub("", " ".join(text.split())).split())


def _unpunctuated(text: str) -> str:
    kept = {match.start() for match in _WITHIN_NUMBER.finditer(text)}
    return "".join(char if at in kept else _without_punctuation(char) for at, char in enumerate(text))


def _without_punctuation(character: str) -> str:
    if character in _KEPT_PUNCTUATION:
        return character
    category = unicodedata.category(character)
    if category == "Pd" or character == "/":
        return " "
    return "" if category.startswith("P") else character
