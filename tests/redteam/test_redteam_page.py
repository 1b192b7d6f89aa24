"""The page on the red team names every cheat, and every test that it names exists."""

import re
from pathlib import Path

from beside import OUTSIDE
from commanded import COMMANDED, SCRIPTED
from episodes import EPISODES
from forged_values import FORGED_VALUES
from forgeries import FORGERIES
from inside import INSIDE
from knowing import KNOWING

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "redteam.md").read_text(encoding="utf-8")
CHEATS = {
    "tests_failed": [*OUTSIDE, *INSIDE, *EPISODES, *COMMANDED, *SCRIPTED],
    "tampered": [*FORGERIES, *FORGED_VALUES, *KNOWING],
}


def test_every_cheat_is_listed_with_how_it_ends() -> None:
    rows = [f"| {name} | `{reason}` |" for reason, names in CHEATS.items() for name in names]
    assert [row for row in rows if row not in PAGE] == []
    assert len(set(rows)) == len(rows) >= 40


def test_every_test_that_is_named_exists() -> None:
    sources = "".join(
        p.read_text(encoding="utf-8") for p in Path(__file__).parent.glob("test_*.py")
    )
    named = set(re.findall(r"\btest_\w+(?=`)", PAGE))
    assert [name for name in named if f"def {name}(" not in sources] == []
    assert len(named) > 12
