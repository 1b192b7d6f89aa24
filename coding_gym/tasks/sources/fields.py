"""Fields that rows of several datasets have."""

from coding_gym.row_reader import RowReader


def hidden_test_ids(reader: RowReader) -> tuple[str, ...]:
    """Returns the ids of all hidden tests of a row in SWE-bench's schema.

    Raises:
        InvalidTaskError: A list of them is none.
    """
    ids: tuple[str, ...] = ()
    for key in ("FAIL_TO_PASS", "PASS_TO_PASS"):
        if reader.row.get(key) is not None:
            ids += reader.texts(key)
    return ids
