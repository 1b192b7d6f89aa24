"""Configuration files of pytest, and options that every run overrides."""

from collections.abc import Mapping

# The files that configure pytest, in its order of precedence.
CONFIG_FILES = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
    *("pyproject.toml", "tox.ini", "setup.cfg"),
)
# Values that override the project's options, so that all tests run in one process, once and in
# order. Options that the installed pytest and its plug-ins do not have are ignored.
NEUTRAL_OPTIONS: Mapping[str, object] = {
    **dict.fromkeys(("collectonly", "usepdb", "trace", "showlocals"), False),
    **dict.fromkeys(("lf", "failedfirst", "newfirst", "stepwise", "randomly_reorganize"), False),
    **dict.fromkeys(("continue_on_collection_errors", "no_cov"), True),
    **dict.fromkeys(("maxfail", "reruns"), 0),
    **dict.fromkeys(("markexpr", "keyword"), ""),
    **dict.fromkeys(("deselect", "numprocesses"), None),
    "dist": "no",
    "tx": [],
    "tbstyle": "line",
}
