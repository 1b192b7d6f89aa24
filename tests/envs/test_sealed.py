"""The sandbox of a bundled task contains neither hidden tests nor the gold patch."""

import ast
from collections.abc import Callable

import episodes
import pytest
from episodes import MakeEnv

from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.patch import Patch

Shell = Callable[[str], str]

# Searches the names and contents of all readable files for the texts in its arguments, and prints
# each match. Pseudo files, and the programs and libraries of the host, are not searched.
SEARCH = """
import os, sys
needles = [n.encode() for n in sys.argv[1:]]
programs = {os.path.realpath(p) for p in ("/usr", sys.base_prefix)}
for folder, folders, files in os.walk("/"):
    folders[:] = [f for f in folders if os.path.join(folder, f) not in {"/proc", "/dev", *programs}]
    for file in files:
        path = os.path.join(folder, file)
        try:
            data = open(path, "rb").read() if os.path.isfile(path) else b""
        except OSError:
            continue
        print(*(f"{path}: {n}" for n in needles if n in data or n in path.encode()), sep="\\n")
"""


@pytest.fixture
def env(make_env: MakeEnv) -> CodingRepairEnv:
    env = make_env(tasks="bundled", task_ids=["hoard-stale-copies"])
    env.reset()
    return env


@pytest.fixture
def shell(env: CodingRepairEnv) -> Shell:
    return lambda command: str(env.step(episodes.shell(command))[4]["text"])


def hidden_names(patch: Patch) -> set[str]:
    """Returns the names of the hidden test functions."""
    tree = ast.parse("\n".join(change.apply("") for change in patch.files))
    functions = (n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    return {name for name in functions if name.startswith("test_")}


def test_no_file_holds_the_gold_patch_or_a_hidden_test(env: CodingRepairEnv, shell: Shell) -> None:
    gold = "".join(change.text for change in Patch(env.episode.task.gold_patch).files)
    added = [line[1:].strip() for line in gold.splitlines() if line.startswith("+")]
    needles = [max(added, key=len), *sorted(hidden_names(Patch(env.episode.task.test_patch)))]
    assert len(needles) > 3
    shell(f"cat > /tmp/search.py <<'EOF'\n{SEARCH}\nEOF")
    quoted = " ".join(f"'{n}'" for n in needles)
    matches = shell(f"cd /tmp && python search.py {quoted}").split("\n")
    assert [line for line in matches if line and not line.startswith("command succ")] == []
    assert "search.py" in shell("cd /tmp && python search.py 'os.walk(\"/\")'")  # its own text


def test_a_policys_commit_does_not_depend_on_the_clock(env: CodingRepairEnv, shell: Shell) -> None:
    shell("echo x > new; git add new; git commit -qm new")
    assert shell("git log -1 --format=%cI") == shell("git log -1 --format=%cI HEAD~1")
