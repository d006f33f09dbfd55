"""Rows of different lengths (ragged arrays) in numpy: sorting and grouping for the builder. Plain
module.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

from registrations.match_index.format.lazy_numpy import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"


def starts_of(lengths: Array) -> Array:
    """Return the offset of each row, and the end: [n + 1]."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def spread(starts: Array, lengths: Array) -> Array:
    """Return the positions `starts[i] ... starts[i] + lengths[i] - 1` of all rows, concatenated."""
    before = np.cumsum(lengths) - lengths
    found: Array = np.arange(int(lengths.sum()), dtype=np.int64) + np.repeat(
        starts - before, lengths
    )
    return found


def sorted_rows(starts: Array, items: Array) -> tuple[Array, Array]:
    """Sort and deduplicate each row; return the lengths and the items. Items have 32 bits."""
    lengths = np.diff(starts)
    rows = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    packed = np.unique((rows << np.uint64(32)) | items.astype(np.uint64))
    found = np.bincount((packed >> np.uint64(32)).astype(np.int64), minlength=len(lengths))
    return found, (packed & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def order_of_rows(matrix: Array) -> Array:
    """Return the order of the rows of a 32-bit matrix, column by column; it is stable."""
    height, width = matrix.shape
    if width % 2:
        matrix = np.hstack((matrix, np.zeros((height, 1), np.uint32)))
    wide = matrix.astype(np.uint64)
    columns = [(wide[:, at] << np.uint64(32)) | wide[:, at + 1] for at in range(0, width, 2)]
    return np.lexsort(columns[::-1]) if columns else np.arange(height)


def first_of_equals(matrix: Array) -> Array:
    """Return for each row of a sorted matrix whether it differs from the one before it."""
    first = np.ones(len(matrix), bool)
    first[1:] = (matrix[1:] != matrix[:-1]).any(axis=1)
    return first
