"""The pages on the red team list every cheat with its reason, and name tests that exist."""

import re
from pathlib import Path

from cheating_episodes import EPISODES
from command_files import COMMANDED, SCRIPTED
from mechanisms import MECHANISMS, PATCHES

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "redteam.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "red-team.md").read_text(encoding="utf-8")
ENDS = {name: cheat.reason.value for name, cheat in PATCHES.items()}
ENDS |= dict.fromkeys([*EPISODES, *COMMANDED, *SCRIPTED], "tests_failed")


def test_every_cheat_is_listed_with_how_it_ends() -> None:
    rows = [f"| {name} | `{reason}` |" for name, reason in ENDS.items()]
    assert [row for row in rows if row not in REFERENCE] == []
    assert len(rows) >= 100


def test_every_mechanism_is_listed_with_its_cheat() -> None:
    assert set(MECHANISMS.values()) <= ENDS.keys()
    rows = [f"| {mechanism} | {name} |" for mechanism, name in MECHANISMS.items()]
    assert [row for row in rows if row not in PAGE] == []


def test_every_test_that_is_named_exists() -> None:
    sources = "".join(
        p.read_text(encoding="utf-8") for p in Path(__file__).parent.glob("test_*.py")
    )
    named = set(re.findall(r"\btest_\w+(?=`)", PAGE + REFERENCE))
    assert [name for name in named if f"def {name}(" not in sources] == []
    assert len(named) > 12
