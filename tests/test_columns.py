"""Columns of texts in Arrow behave as lists of strings do, and are grouped as those would be."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kpyramid.storage.columns import TextColumn, group_rows, join_columns, pick_rows

WORDS = st.lists(st.text(max_size=3), min_size=1, max_size=6)


@st.composite
def draw_column(draw: st.DrawFn) -> tuple[list[str], TextColumn]:
    """The rows of a column, and the column: words in one chunk or two, with codes or without."""
    words = draw(WORDS)
    cut = draw(st.integers(0, len(words)))
    chunked = pa.chunked_array([words[:cut], words[cut:]], pa.string())
    if draw(st.booleans()):
        return words, TextColumn(chunked)
    codes = draw(st.lists(st.integers(0, len(words) - 1), max_size=8))
    return [words[at] for at in codes], TextColumn(chunked, np.array(codes, dtype=np.int64))


@given(draw_column())
def test_a_column_reads_as_the_list_of_its_rows(both: tuple[list[str], TextColumn]) -> None:
    rows, column = both
    assert list(column) == column.read().to_pylist() == rows
    assert [column[at] for at in range(len(column))] == rows
    assert list(column[1:4]) == rows[1:4]
    places = np.arange(len(rows))[::-2]
    assert list(pick_rows(column, places)) == pick_rows(rows, places) == rows[::-2]


@given(draw_column(), draw_column())
def test_joined_columns_are_both(
    one: tuple[list[str], TextColumn], other: tuple[list[str], TextColumn]
) -> None:
    assert list(join_columns(one[1], other[1])) == [*one[0], *other[0]]
    shared = TextColumn(one[1].words, one[1].codes[:2])
    assert list(join_columns(one[1], shared)) == [*one[0], *one[0][:2]]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=20))
def test_rows_of_codes_are_grouped_and_counted(rows: list[tuple[int, int]]) -> None:
    columns = [np.array(part, dtype=np.int64) for part in zip(*rows, strict=True)]
    found, groups, counts = group_rows(*(columns or [np.zeros(0, dtype=np.int64)] * 2))
    distinct = list(zip(*(part.tolist() for part in found), strict=True))
    assert distinct == sorted(set(rows))
    assert [distinct[at] for at in groups] == rows
    assert counts.tolist() == [rows.count(row) for row in distinct]
