"""Compares, patches and merges texts, line by line."""

from braid.errors import BraidError, HunkError, PatchError
from braid.merging import MergeResult, merge
from braid.patching import apply
from braid.unified import diff

__all__ = ["BraidError", "HunkError", "MergeResult", "PatchError", "apply", "diff", "merge"]
