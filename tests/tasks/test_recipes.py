"""Specifications of SWE-bench's harness become commands that need only pip."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from sandbox_fixtures import commit

from coding_gym.tasks.recipes import make_recipe

# Replaces the environment's Python: logs what pip would install, and refuses one package.
_PYTHON = """\
#!/bin/bash
for word; do
  [ -f "$word" ] && { while read -r line; do words+=("$line"); done < "$word"; } || words+=("$word")
done
echo "${words[@]}" >> "$NOTES"
[[ "${words[*]}" != *unobtainable* ]]
"""


def run(recipe: dict[str, Any], tree: Path, tmp_path: Path) -> list[str]:
    """Runs a recipe's commands in a tree; returns the arguments of each pip install."""
    binaries, notes = tmp_path / "bin", tmp_path / "notes"
    binaries.mkdir()
    (binaries / "python").write_text(_PYTHON)
    (binaries / "python").chmod(0o755)
    environment = {
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "NOTES": str(notes),
        "VIRTUAL_ENV": str(tmp_path),
    }
    for command in recipe["install_commands"]:
        subprocess.run(["/bin/bash", "-c", command], cwd=tree, env=environment, check=True)
    before = "-m pip install "
    return [line.removeprefix(before) for line in notes.read_text().splitlines()]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    return folder


def test_packages_come_first_then_the_project_then_pytest(tree: Path, tmp_path: Path) -> None:
    spec = {
        "python": "3.9",
        "packages": "numpy 'scipy=1.5=py39' pandas=1.* 'cython<3' python=3.9 pip=21 make",
        "pip_packages": ["attrs==21.2", "'wheel<1'"],
        "pre_install": ["apt-get update && apt-get install -y x", "touch prepared"],
        "install": "python -m pip install -e .",
        "test_cmd": "pytest -rA",
    }
    recipe = make_recipe(spec)
    assert run(recipe, tree, tmp_path) == [
        "--upgrade pip",
        "--upgrade setuptools wheel",
        "numpy scipy==1.5.* pandas==1.* cython<3",
        "attrs==21.2 wheel<1",
        "-e .",
        "pytest<9",
    ]
    assert (tree / "prepared").exists()
    (excluded,) = [c for c in recipe["install_commands"] if "apt-get" in c]
    assert excluded.startswith("echo ")
    assert (recipe["interpreter"], recipe["visible_test_command"]) == ("3.9", "pytest -rA")


def test_requirements_are_installed_one_by_one_after_a_failure(tree: Path, tmp_path: Path) -> None:
    (tree / "dev").mkdir()
    lines = [
        "# tools",
        "unobtainable==1",
        "-e .",
        ".[test]",
        "types-pkg_resources==1",
        "a>1 ; os_name=='x'",
    ]
    (tree / "dev" / "all.txt").write_text("\n".join(lines) + "\n")
    spec = {"python": "3.9", "packages": "requirements.txt"}
    recipe = make_recipe(spec, requirements=["missing.txt", "dev/all.txt"])
    _, _, *tried = run(recipe, tree, tmp_path)
    packages = ["unobtainable==1", "types-setuptools", "a>1 ; os_name=='x'"]
    assert tried == [f"-r {' '.join(packages)}", *(f"-r {package}" for package in packages)]
    assert [path.name for path in (tree / "dev").iterdir()] == ["all.txt"]


def test_pip_requirements_of_a_conda_environment_are_installed(tree: Path, tmp_path: Path) -> None:
    lines = ["name: testing", "channels:", "  - conda-forge", "dependencies:", "  - python=3.9"]
    lines += ["  - numpy>=1.19", "  - cairo=1.16.0=h1", "  - pip", "  - pip:", "    - sphinx==4.*"]
    lines += ["    - pytest!=4.6.0,!=5.4.0 # not these", '  - "black<23"', "  - pillow=9.*"]
    (tree / "environment.yml").write_text("\n".join(lines) + "\n")
    spec = {"python": "3.9", "packages": "environment.yml"}
    *_, listed = run(make_recipe(spec, environments=["environment.yml"]), tree, tmp_path)
    assert listed.split()[1:] == [
        "numpy>=1.19",
        "cairo==1.16.0.*",
        "sphinx==4.*",
        "pytest!=4.6.0,!=5.4.0",
        "black<23",
        "pillow==9.*",
    ]


def test_missing_requirements_file_is_an_error(tree: Path, tmp_path: Path) -> None:
    recipe = make_recipe({"packages": "requirements.txt"}, requirements=["a.txt", "b c.txt"])
    with pytest.raises(subprocess.CalledProcessError):
        run(recipe, tree, tmp_path)


def constraints(tree: Path, tmp_path: Path, day: str = "", **parts: Any) -> set[str]:
    """Returns the constraints of a recipe in a tree with a commit of that day."""
    if day:
        commit(tree, {"a.py": ""}, date=f"{day} 02:02:02 +0000")
    run(make_recipe({"python": "3.9", **parts}, requirements=["all.txt"]), tree, tmp_path)
    return set((tmp_path / "constraints.txt").read_text().splitlines())


@pytest.mark.parametrize(
    ("day", "ruled_out", "allowed"),
    [
        ("2019-01-01", {"numpy<2", "jinja2<3.1", "setuptools<70"}, set()),
        ("2022-03-26", {"click<8.1"}, {"jinja2<3.1"}),
        ("2024-02-01", {"setuptools<70", "numpy<2", "pip<24.1"}, {"pytest<8"}),
        ("2026-01-01", {"setuptools<81"}, {"numpy<2", "setuptools<70"}),
        ("", {"setuptools<81"}, {"numpy<2"}),
    ],
)
def test_later_releases_that_break_old_projects_are_ruled_out(
    tree: Path, tmp_path: Path, day: str, ruled_out: set[str], allowed: set[str]
) -> None:
    rules = constraints(tree, tmp_path, day)
    assert ruled_out <= rules
    assert not allowed & rules
    place = tmp_path / "constraints.txt"
    settings = f"[global]\nconstraint = {place}\nbuild-constraint = {place}\n"
    assert (tmp_path / "pip.conf").read_text() == settings


@pytest.mark.parametrize(
    "packages",
    [
        {"packages": "numpy=2.1 pandas", "pip_packages": ["importlib_metadata>4,<7", "pytest>=6"]},
        {"packages": "requirements.txt"},
    ],
)
def test_packages_that_the_project_pins_are_not_constrained(
    tree: Path, tmp_path: Path, packages: dict[str, Any]
) -> None:
    lines = "NumPy==2.1\nimportlib_metadata[x] >4, ~=6.0\npytest>=6; python_version<'4'\npandas\n"
    (tree / "all.txt").write_text(lines)
    rules = constraints(tree, tmp_path, "2019-01-01", **packages)
    assert not {rule for rule in rules if rule.startswith(("numpy", "importlib"))}
    assert {"pandas<2", "pytest<8"} <= rules
