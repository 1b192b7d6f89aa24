"""Installs the package as users do, in clean environments, and repairs a task with it.

    python scripts/check_install.py python3.11 python3.12 python3.13

Builds the sdist and, from it, the wheel. Each interpreter installs the wheel into a virtual
environment without a compiler, runs the README's example in an empty folder, and runs the command
line. A wheel without a platform in its name runs on every machine.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
NO_COMPILER = {"CC": "/bin/false", "CXX": "/bin/false", "RUSTC": "/bin/false"}


def run(folder: Path, *command: str | Path) -> str:
    """Runs a command in a folder; returns its output, or exits if it fails."""
    env = os.environ | NO_COMPILER
    env.pop("PYTHONPATH", None)
    result = subprocess.run(
        [str(word) for word in command], cwd=folder, env=env, capture_output=True, text=True
    )
    if result.returncode:
        output = result.stdout + result.stderr
        raise SystemExit(f"{command} ended with {result.returncode}:\n{output}")
    return result.stdout


def make_environment(folder: Path, interpreter: str, *packages: str | Path) -> Path:
    """Makes a virtual environment with packages; returns its folder of programs."""
    run(folder, interpreter, "-m", "venv", folder / "venv")
    programs = folder / "venv" / "bin"
    run(folder, programs / "python", "-m", "pip", "install", "-q", *packages)
    return programs


def build_wheel(folder: Path, interpreter: str) -> Path:
    """Builds sdist and wheel; returns the wheel."""
    folder.mkdir()
    programs = make_environment(folder, interpreter, "build")
    run(folder, programs / "python", "-m", "build", ROOT, "--outdir", folder)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    if not wheel.name.endswith("-py3-none-any.whl"):
        raise SystemExit(f"{wheel.name} is for one platform only")
    print(f"built {sdist.name} and {wheel.name}", flush=True)
    return wheel


def check(folder: Path, interpreter: str, wheel: Path) -> None:
    """Installs the wheel; runs the README's example and the command line."""
    folder.mkdir()
    programs = make_environment(folder, interpreter, "--only-binary", ":all:", wheel)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.findall(r"(?ms)^```python\n(.*?)^```", readme)[0]
    (folder / "example.py").write_text(example, encoding="utf-8")
    last_line = run(folder, programs / "python", "example.py").splitlines()[-1]
    if not last_line.startswith("1.0 "):
        raise SystemExit(f"the README's example printed {last_line!r}")
    version = run(folder, programs / "python", "--version").strip()
    print(f"{version}: {last_line}; {run(folder, programs / 'coding-gym', '--version').strip()}")


def main() -> None:
    """Checks each interpreter of the command line, or the interpreter that runs this script."""
    interpreters = sys.argv[1:] or [sys.executable]
    with tempfile.TemporaryDirectory() as name:
        wheel = build_wheel(Path(name, "build"), interpreters[0])
        for number, interpreter in enumerate(interpreters):
            check(Path(name, str(number)), interpreter, wheel)


if __name__ == "__main__":
    main()
