from collections.abc import Mapping

import pytest
from episodes import SHELF, MakeEnv, played_by

from coding_gym.tools import toolset_names

pytestmark = pytest.mark.slow

HOPELESS = {
    "poly.py": "def value(coefficients, x):\n    return 0\n",
    "test_poly.py": (
        "from poly import value\n\n\n"
        "def test_value():\n    assert value([1, 2, 3], 2) == 17\n"
        "    assert value([1, 2, 3], 3) == 34\n"
    ),
}
HEALTHY = {"ok.py": "def f():\n    return 1\n", "test_ok.py": "def test_f():\n    pass\n"}


@pytest.mark.parametrize("toolset", toolset_names())
def test_agent_makes_only_the_repairing_edit(make_env: MakeEnv, toolset: str) -> None:
    record = played_by(make_env(tasks=[SHELF], toolset=toolset), "template-repair")
    lines = [line[1:] for line in record.patch.splitlines() if line[:1] == "+" != line[1:2]]
    assert lines == ["        if len(self.things) >= self.size:"]
    results = [result.content for turn in record.turns for result in turn.results]
    assert any("2 passed" in result for result in results)
    assert len(record.turns) == 3


@pytest.mark.parametrize("files", [HOPELESS, HEALTHY], ids=["no edit repairs", "no test fails"])
def test_agent_submits_without_a_repair(make_env: MakeEnv, files: Mapping[str, str]) -> None:
    env = make_env(tasks=[SHELF | {"files": dict(files), "PASS_TO_PASS": []}], grading="none")
    record = played_by(env, "template-repair")
    assert (record.patch, len(record.turns)) == ("", 1)
    assert record.stop_reason == "submitted"
