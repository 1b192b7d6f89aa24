"""The text behind an editor window."""

from quill.document import Document
from quill.edits import Edit
from quill.errors import GroupError, PositionError, QuillError

__all__ = ["Document", "Edit", "GroupError", "PositionError", "QuillError"]
