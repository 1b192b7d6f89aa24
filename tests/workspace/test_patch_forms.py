"""Forms of a patch's text: applied as by SWE-bench's three commands, or refused."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from workspace_scene import FILES

from coding_gym.errors import MissingDependencyError, PatchError
from coding_gym.patch import Patch
from coding_gym.sandbox import Mount, Sandbox, open_sandbox
from coding_gym.workspace import Template, normalize

pytestmark = pytest.mark.slow

CORE, README = FILES["pkg/core.py"], FILES["README.md"]
FIXED = {"pkg/core.py": CORE.replace("LINE_9 = 9", "LINE_9 = 99"), "README.md": README + "More.\n"}
GOLD = Patch.between({"pkg/core.py": CORE, "README.md": README}, FIXED)
ONE = Patch.between({"pkg/core.py": CORE}, {"pkg/core.py": FIXED["pkg/core.py"]}).text
BINARY = "diff --git a/x b/x\nnew file mode 100644\nBinary files /dev/null and b/x differ\n"
MAIL = "From 1 Mon Sep 17 00:00:00 2001\nFrom: A <a@b.c>\nSubject: x\n\n---\n{}-- \n2.43.0\n"
HEADERS = re.compile(r"^diff --git .*\n", re.MULTILINE)

APPLIED = {
    "as git writes it": GOLD.text,
    "carriage returns": GOLD.text.replace("\n", "\r\n"),
    "without its last line feed": GOLD.text.rstrip("\n"),
    "plain diff": HEADERS.sub("", GOLD.text),
    "other prefixes": GOLD.text.replace("a/", "c/").replace("b/", "i/"),
    "mail": MAIL.format(GOLD.text),
    "fenced": f"```diff\n{GOLD.text}```\n",
    "byte order mark": f"\ufeff{GOLD.text}",
    "lines moved": GOLD.text.replace("@@ -7,7 +7,7 @@", "@@ -2,7 +2,7 @@"),
    "context that drifted": GOLD.text.replace(" LINE_6 = 6\n", " LINE_6 = other\n"),
}
REFUSED = {
    "no diff": "I could not find it.",
    "reversed": Patch.between(FIXED, {"pkg/core.py": CORE, "README.md": README}).text,
    "twice": GOLD.text + GOLD.text,
    "wrong count": GOLD.text.replace("@@ -1,3 +1,4 @@", "@@ -1,9 +1,9 @@"),
    "one file of two fits": GOLD.text.replace("-LINE_9 = 9\n", "-LINE_9 = 8\n"),
    "file that exists": Patch.between({}, {"README.md": "new\n"}).text,
    "file that is missing": ONE.replace("pkg/core.py", "pkg/gone.py"),
    "outside": ONE.replace("pkg/core.py", "../core.py"),
    "without prefixes": ONE.replace("a/", "").replace("b/", ""),
}


@pytest.mark.parametrize("form", APPLIED)
def test_form_of_the_text_does_not_change_the_patch(
    sandbox: Sandbox, template: Template, form: str
) -> None:
    expected = normalize(sandbox, template, GOLD)
    assert normalize(sandbox, template, Patch(APPLIED[form])) == expected
    assert sandbox.run("git status --porcelain; ls -A /tmp").output == ""


@pytest.mark.parametrize("form", REFUSED)
def test_text_that_does_not_apply_is_refused(
    sandbox: Sandbox, template: Template, form: str
) -> None:
    with pytest.raises(PatchError, match=r"^[^\n]+$") as caught:
        normalize(sandbox, template, Patch(REFUSED[form]))
    assert ("--no-prefix" in str(caught.value)) == (form == "without prefixes")
    assert sandbox.run("git status --porcelain; ls -A /tmp").output == ""


def test_a_missing_patch_program_is_named(template: Template, tmp_path: Path) -> None:
    (tmp_path / "patch").touch()  # not executable
    mount = Mount(source=tmp_path / "patch", target="/usr/bin/patch")
    spec = replace(template.spec, mounts=(*template.spec.mounts, mount))
    with (
        open_sandbox(spec) as sandbox,
        pytest.raises(MissingDependencyError, match=r"git findutils patch$"),
    ):
        normalize(sandbox, template, Patch(APPLIED["context that drifted"]))


def test_a_binary_file_without_data_is_skipped(sandbox: Sandbox, template: Template) -> None:
    change = normalize(sandbox, template, Patch(BINARY + GOLD.text))
    assert change.text.startswith(normalize(sandbox, template, GOLD).text)


def test_installed_files_are_not_in_the_patch(sandbox: Sandbox, template: Template) -> None:
    sandbox.run("mkdir pkg.egg-info; echo 1 > pkg.egg-info/PKG-INFO")
    built = Patch.between({}, {"pkg.egg-info/PKG-INFO": "1\n", "new.py": "x = 1\n"})
    change = normalize(sandbox, template, Patch(GOLD.text + built.text))
    assert change.paths == {"pkg/core.py", "README.md", "new.py"}
