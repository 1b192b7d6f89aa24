"""What a project tells pytest about its tests, and what is overruled."""

from collections.abc import Mapping

# Where a project may tell pytest how to run, in pytest's own order of precedence.
CONFIG_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
# Overrules a project's own options: all tests run, in this process, once and in order. Options that
# this pytest and its plug-ins do not have are ignored.
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
