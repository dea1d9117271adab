import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import InputError
from tasks.prompts import answer_prompt
from tasks.tokenization import ChatTokenizer
from tasks.truncation import fit, middle_truncate, truncate_documents


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0, []),
        (-3, []),
        (1, [9]),
        (4, [0, 1, 8, 9]),
        (5, [0, 1, 7, 8, 9]),  # odd: the extra one at the back
        (9, [0, 1, 2, 3, 5, 6, 7, 8, 9]),
        (10, list(range(10))),
        (11, list(range(10))),
    ],
)
def test_middle_truncation(limit: int, expected: list[int]) -> None:
    assert middle_truncate(range(10), limit) == expected


@given(st.lists(st.integers(), max_size=30), st.integers(1, 40))
def test_middle_truncation_is_the_published_formula(ids: list[int], limit: int) -> None:
    published = ids[: limit // 2] + ids[-limit // 2 :] if len(ids) > limit else ids
    assert middle_truncate(ids, limit) == published
    assert len(published) == min(limit, len(ids))


def test_documents_are_cut_as_if_laid_end_to_end(tokenizer: ChatTokenizer) -> None:
    documents = ("w0 w1 w2", "w3 w4 w5", "w6 w7", "w8 w9")
    fitted = truncate_documents(documents, 6, tokenizer)
    assert fitted.documents == ("w0 w1 w2", "w7", "w8 w9")
    assert fitted.kept == {0, 3}
    assert fitted.cut


def test_cut_within_one_document(tokenizer: ChatTokenizer) -> None:
    fitted = truncate_documents(("w0 w1 w2 w3 w4",), 3, tokenizer)
    assert fitted.documents == ("w0 w3 w4",)
    assert fitted.kept == set()


def test_cut_at_the_borders_of_documents(tokenizer: ChatTokenizer) -> None:
    fitted = truncate_documents(("w0 w1", "w2 w3", "w4 w5"), 4, tokenizer)
    assert fitted.documents == ("w0 w1", "w4 w5")
    assert fitted.kept == {0, 2}


def test_documents_that_fit_stay(tokenizer: ChatTokenizer) -> None:
    documents = ("w0  w1", "w2")  # two blanks would not survive a round trip through ids
    fitted = truncate_documents(documents, 3, tokenizer)
    assert (fitted.documents, fitted.kept, fitted.cut) == (documents, {0, 1}, False)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(0, 40))
def test_documents_joined_equal_the_ids_truncated(lengths: list[int], limit: int) -> None:
    tokenizer = word_tokenizer()
    names = iter(range(40))
    documents = [" ".join(f"w{next(names)}" for _ in range(length)) for length in lengths]
    fitted = truncate_documents(documents, limit, tokenizer)
    ids = [token for document in documents for token in tokenizer.encode(document)]
    left = [token for document in fitted.documents for token in tokenizer.encode(document)]
    assert left == middle_truncate(ids, limit)
    assert all(documents[index] in fitted.documents for index in fitted.kept)


def word_tokenizer() -> ChatTokenizer:
    from tests.evaluation.conftest import fast_tokenizer

    return ChatTokenizer(fast_tokenizer())


def render(documents) -> str:
    return answer_prompt(documents, "w0 w1 ?")


def test_fit_fills_the_window_without_exceeding_it(tokenizer: ChatTokenizer) -> None:
    documents = tuple(f"w{number} w{number + 1} w{number + 2}" for number in range(0, 36, 3))
    window = 30
    assert tokenizer.prompt_length(render(documents)) > window
    fitted = fit(documents, render, window, tokenizer)
    length = tokenizer.prompt_length(render(fitted.documents))
    assert window - 3 <= length <= window  # one more token may cost a document number, too
    assert fitted.cut
    assert fitted.documents[0] == documents[0]
    assert fitted.documents[-1] == documents[-1]


def test_fit_leaves_what_fits(tokenizer: ChatTokenizer) -> None:
    fitted = fit(("w0", "w1"), render, 100, tokenizer)
    assert (fitted.documents, fitted.cut) == (("w0", "w1"), False)


def test_fit_down_to_no_document(tokenizer: ChatTokenizer) -> None:
    bare = tokenizer.prompt_length(render(()))
    fitted = fit(("w0 w1 w2 w3",), render, bare, tokenizer)
    assert (fitted.documents, fitted.kept, fitted.cut) == ((), frozenset(), True)


def test_question_that_cannot_fit(tokenizer: ChatTokenizer) -> None:
    bare = tokenizer.prompt_length(render(()))
    with pytest.raises(InputError, match=f"{bare} tokens without any document"):
        fit(("w0",), render, bare - 1, tokenizer)
