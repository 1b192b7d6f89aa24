"""A workspace whose commands run through a shell, as an agent runs them."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from repositories import write_files

Files = Mapping[str, str]
# Its second test fails only after the first one.
BAG = {
    "bag.py": "def add(x, bag=[]):\n    bag.append(x)\n    return bag\n",
    "test_bag.py": "from bag import add\n\n\ndef test_one():\n    assert add(1) == [1]\n\n\n"
    "def test_two():\n    assert add(2) == [2]\n",
}


class Shell:
    """Runs commands in a workspace with a /tmp of its own, replies cut to 2,000 characters."""

    def __init__(self, folder: Path, files: Files) -> None:
        self.workspace = folder / "workspace"
        write_files(self.workspace, files)
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.env = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin",
            "TMPDIR": str(self.temporary),
            "PYTHONHASHSEED": "0",
        }

    def __call__(self, command: str) -> str:
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=self.workspace,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        output = (done.stdout + done.stderr).strip()
        return output if len(output) <= 2000 else output[:2000] + "... output truncated"

    def files(self) -> dict[str, str]:
        """Returns every file of the workspace."""
        found = sorted(path for path in self.workspace.rglob("*") if path.is_file())
        return {str(p.relative_to(self.workspace)): p.read_bytes().decode() for p in found}
