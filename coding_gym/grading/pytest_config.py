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
    "markexpr": "",
    "keyword": "",
    "deselect": None,
    "collectonly": False,
    "maxfail": 0,
    "continue_on_collection_errors": True,
    "numprocesses": None,
    "dist": "no",
    "tx": [],
    "usepdb": False,
    "trace": False,
    "lf": False,
    "failedfirst": False,
    "newfirst": False,
    "stepwise": False,
    "reruns": 0,
    "randomly_reorganize": False,
    "tbstyle": "line",
    "showlocals": False,
    "no_cov": True,
}
