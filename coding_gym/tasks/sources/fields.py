"""Fields that rows of several datasets have."""

from coding_gym.errors import PatchError
from coding_gym.patch import Patch
from coding_gym.row_reader import RowReader


def patch_text(reader: RowReader, key: str) -> str:
    """Returns the text of a field that must hold a unified diff.

    Raises:
        InvalidTaskError: It is missing, or is none.
    """
    text = reader.required(key)
    try:
        Patch(text).files  # noqa: B018 - reading it is the check
    except PatchError as error:
        raise reader.error(key, f"is not a patch: {error}") from None
    return text


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
