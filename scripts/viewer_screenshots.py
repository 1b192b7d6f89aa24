"""Makes the pictures of docs/viewer.md: runs are played and made up, and looked at in Chromium.

python scripts/viewer_screenshots.py [FOLDER]
"""

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from browsing import COMMAND, chromium, quiet_page, served

from coding_gym.testing.synthetic_runs import make_run

_TASK = "birch__ledger-000013"
_REPAIRED = "ledgerline-month-overlap"
_PAGES = {
    "runs": ("#/", "light", (1200, 420)),
    "episodes": (
        "#/run/coder-small?repo=cedar%2Fcache&sort=tokens",
        "light",
        (1200, 680),
    ),
    "episode": (f"#/run/template-repair/episode?task={_REPAIRED}&attempt=0", "light", (1200, 760)),
    "turns": (f"#/run/coder-small/episode?task={_TASK}&attempt=0&turn=3", "dark", (1200, 600)),
    "pair": (f"#/pair?a=coder-small|{_TASK}|0&b=coder-large|{_TASK}|0", "light", (1200, 700)),
    "compare": ("#/compare?a=coder-small&b=coder-large", "light", (1200, 720)),
    "phone": ("#/run/coder-large", "dark", (390, 700)),
}


def main() -> None:
    """Writes one PNG of each page."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images").resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        runs = Path("runs")
        make_run(runs / "coder-small", 120, 2)
        make_run(runs / "coder-large", 120, 2, skill=0.6, seed=1)
        arguments = ["eval", "--agent", "template-repair", "--task", _REPAIRED]
        subprocess.run(
            [*COMMAND, *arguments, "--out", str(runs / "template-repair")],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with served(runs) as address, chromium() as browser:
            for name, (place, scheme, (width, height)) in _PAGES.items():
                size = {"width": width, "height": height}
                with quiet_page(browser, color_scheme=scheme, viewport=size) as page:
                    page.goto(address + place)
                    page.get_by_role("heading", level=1).wait_for()
                    page.wait_for_timeout(1_000)  # charts, and tasks that are still being loaded
                    page.screenshot(path=out / f"viewer-{name}.png")


if __name__ == "__main__":
    main()
