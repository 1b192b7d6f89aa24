"""Names of programming languages, and the language of a patch."""

from collections import Counter
from pathlib import PurePosixPath

from coding_gym.errors import PatchError
from coding_gym.patch import Patch

_SUFFIXES = {
    "c": (".c", ".h"),
    "cpp": (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"),
    "csharp": (".cs",),
    "go": (".go",),
    "java": (".java",),
    "javascript": (".js", ".jsx", ".mjs", ".cjs"),
    "kotlin": (".kt",),
    "php": (".php",),
    "python": (".py", ".pyi", ".pyx"),
    "ruby": (".rb",),
    "rust": (".rs",),
    "scala": (".scala",),
    "swift": (".swift",),
    "typescript": (".ts", ".tsx"),
}
_BY_SUFFIX = {suffix: name for name, suffixes in _SUFFIXES.items() for suffix in suffixes}
_OTHER_SPELLINGS = {
    "c++": "cpp",
    "c#": "csharp",
    "cs": "csharp",
    "golang": "go",
    "js": "javascript",
    "py": "python",
    "rs": "rust",
    "ts": "typescript",
}


def language_named(name: str) -> str:
    """Returns the canonical name of a language."""
    lower = name.strip().lower()
    return _OTHER_SPELLINGS.get(lower, lower)


def language_of(patch: str) -> str:
    """Returns the main language of the files that a patch changes; Python for unknown suffixes."""
    try:
        paths = sorted(Patch(patch).paths)
    except PatchError:  # reported later, with the name of the field
        return "python"
    suffixes = (PurePosixPath(path).suffix.lower() for path in paths)
    counts = Counter(_BY_SUFFIX[suffix] for suffix in suffixes if suffix in _BY_SUFFIX)
    # C++ projects also use the header suffix of C.
    if counts["c"] and counts["cpp"]:
        counts["cpp"] += counts.pop("c")
    return max(counts, key=lambda name: counts[name]) if counts else "python"
