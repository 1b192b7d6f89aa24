"""Runs that confirm a repair cost an honest patch only time; forged patches earn nothing."""

import base64
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from cart_task import BASE, FIXED, TASK, with_hidden
from grading_fixtures import GradeTree
from making_images import (
    GIT_PROGRAMS,
    docker_archive,
    folder,
    python_with_pytest,
    symlink,
    system,
    tar_of,
)
from mechanisms import PATCHES

from coding_gym.grade import GradeReason
from coding_gym.grading import grade, tries
from coding_gym.grading.canaries import Turned
from coding_gym.patch import Patch
from coding_gym.sandbox import Sandbox, open_sandbox
from coding_gym.task import FilesTree, Task
from coding_gym.workspace import Template, TemplateStore, diff

_PARAMETERS = """\
import pytest

from cart import total


@pytest.mark.parametrize("discount", [1, 2, 3, 4])
def test_total(discount):
    wanted = 9 - discount
    assert total([9], discount) == wanted
"""


def _patch(source: str) -> Patch:
    return Patch.between(BASE, BASE | {"cart.py": source})


@pytest.mark.parametrize("draw", range(3))
def test_a_repair_of_some_parameters_is_no_forgery(store: TemplateStore, draw: int) -> None:
    """What fails with some parameters passes with these when it is turned."""
    task = with_hidden(_PARAMETERS, *(f"test_total[{number}]" for number in range(1, 5)))
    half = FIXED.replace("- discount", "- min(discount, 2)")
    verdict = grade(task, store.get(task), _patch(half), rng=Random(draw))
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert verdict.pass_fraction == 0.5


@pytest.mark.parametrize("draw", range(2))
def test_parameters_expected_to_fail_are_no_forgery(store: TemplateStore, draw: int) -> None:
    hidden = _PARAMETERS.replace("[1, 2, 3, 4]", "[1, 2, -3]").replace(
        "9 - discount", "9 - abs(discount)"
    )
    task = with_hidden(hidden, "test_total[1]", "test_total[2]")
    verdict = grade(task, store.get(task), Patch(TASK.gold_patch), rng=Random(draw))
    assert verdict.resolved, verdict


def test_tests_in_the_file_that_is_repaired_are_those_of_the_repair(store: TemplateStore) -> None:
    """As in Rust: the gold patch changes the file that holds the tests, and they stay in it."""
    tests = (
        "\n\ndef test_total():\n    assert total([10, 5], 3) == 12\n"
        "\n\ndef test_count():\n    assert count([1]) == 1\n"
    )
    base = BASE | {"cart.py": BASE["cart.py"] + tests}
    gold = Patch.between({"cart.py": base["cart.py"]}, {"cart.py": FIXED + tests})
    task = replace(
        TASK,
        tree=FilesTree(base),
        test_patch="",
        gold_patch=gold.text,
        fail_to_pass=("cart.py::test_total",),
        pass_to_pass=("cart.py::test_count",),
    )
    verdict = grade(task, store.get(task), gold)
    assert verdict.resolved, verdict
    half = Patch.between(base, base | {"cart.py": base["cart.py"] + "\n\nVERSION = 2\n"})
    assert grade(task, store.get(task), half).reason is GradeReason.TESTS_FAILED


_TOGETHER = {
    "inherited": (
        "from cart import total\n\n\nclass TestBase:\n    price = 9\n\n"
        "    def test_total(self):\n        assert total([self.price], 2) == self.price - 2\n\n\n"
        "class TestOther(TestBase):\n    price = 5\n",
        ("TestBase::test_total", "TestOther::test_total"),
    ),
    "one after the other": (
        "import pytest\n\nfrom cart import total\n\ndone = []\n\n\n"
        "def test_first():\n    assert total([9], 2) == 7\n    done.append(1)\n\n\n"
        "def test_second():\n    if not done:\n        pytest.skip('the first failed')\n"
        "    assert total([9], 3) == 6\n",
        ("test_first", "test_second"),
    ),
    "under two names": (
        "from cart import total\n\n\ndef test_total():\n    assert total([9], 2) == 7\n\n\n"
        "test_again = test_total\n",
        ("test_total", "test_again"),
    ),
    "ids that differ from run to run": (
        "import os\n\nimport pytest\n\nfrom cart import total\n\n"
        "NAME = f'a {os.urandom(8).hex()}'\n\n\n"
        "@pytest.mark.parametrize('x', [1], ids=[NAME])\n"
        "def test_total(x):\n    assert total([9], 2) == 7\n",
        ("test_total[a",),
    ),
}


@pytest.mark.parametrize(("hidden", "broken"), _TOGETHER.values(), ids=_TOGETHER.keys())
def test_tests_that_hang_together_are_resolved_together(
    store: TemplateStore, hidden: str, broken: tuple[str, ...]
) -> None:
    task = with_hidden(hidden, *broken)
    verdict = grade(task, store.get(task), Patch(task.gold_patch))
    assert verdict.resolved, verdict


@pytest.mark.parametrize(
    "name", ["copies spared by their names", "equality that looks at its caller"]
)
def test_without_the_two_runs_a_challenge_aware_cheat_would_be_resolved(
    grade_tree: GradeTree, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """So that the red team's assertion that it is found out is about these runs."""
    assert not grade_tree(PATCHES[name].changes, rng=Random(0)).resolved
    monkeypatch.setattr(tries, "contradict", lambda *_: Turned())
    assert grade_tree(PATCHES[name].changes, rng=Random(0)).resolved


READING = """\
import pathlib, zlib


def total(prices, discount=0):
    raise ValueError(zlib.crc32(pathlib.Path("tests/test_discounts.py").read_bytes()))
"""


def test_grades_with_equal_random_sources_make_equal_draws(grade_tree: GradeTree) -> None:
    """The source under test reports a checksum of the tests, canaries included."""
    details = [
        grade_tree({"cart.py": f"{BASE['cart.py']}\n\n{READING}"}, **options).detail
        for options in ({"rng": Random(1)}, {"rng": Random(1)}, {"rng": Random(2)}, {}, {})
    ]
    assert "ValueError: " in details[0]
    assert details[0] == details[1]
    assert len(set(details)) == 4


def test_golds_take_fewer_runs(store: TemplateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def counted(*arguments: Any, **options: Any) -> Sandbox:
        opened.append("sandbox")
        return open_sandbox(*arguments, **options)

    monkeypatch.setattr("coding_gym.grading.tries.open_sandbox", counted)
    task = with_hidden(_PARAMETERS, *(f"test_total[{number}]" for number in range(1, 5)))
    template = store.get(task)
    assert grade(task, template, Patch(TASK.gold_patch)).resolved
    assert len(opened) == 3
    gold = grade(task, template, Patch(TASK.gold_patch), is_gold=True)
    assert (gold.resolved, len(opened)) == (True, 5)
    none = grade(task, template, _patch(BASE["cart.py"] + "\n"), is_gold=True)
    assert (none.reason, len(opened)) == (GradeReason.TESTS_FAILED, 6)


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    entries = [*system(*GIT_PROGRAMS), folder("usr"), symlink("usr/bin", "/bin")]
    path = tmp_path_factory.mktemp("image") / "image.tar"
    layers = [tar_of([*entries, *python_with_pytest()])]
    return str(docker_archive(path, layers, Env=["PATH=/opt/python/bin:/bin"]))


@pytest.fixture
def task(tiny_row: dict[str, Any], image: str) -> Task:
    row = tiny_row | {"image": image, "interpreter": "image"}
    row["files"] = row["files"] | {".gitignore": "*.so\n"}
    row["PASS_TO_PASS"] = []
    row["test_patch"] = row["test_patch"].replace("test_hidden", "tests/test_hidden")
    row["FAIL_TO_PASS"] = [f"tests/{name}" for name in row["FAIL_TO_PASS"]]
    return Task.from_row(row)


@pytest.fixture(scope="session")
def image_store(tmp_path_factory: pytest.TempPathFactory) -> TemplateStore:
    return TemplateStore(folder=tmp_path_factory.mktemp("image-store"))


@pytest.fixture
def template(image_store: TemplateStore, task: Task) -> Template:
    return image_store.get(task)


def _new_file(path: str, text: str, *, old: str = "a", new: str = "b", header: bool = True) -> str:
    lines = "".join(f"+{line}\n" for line in text.splitlines())
    count = len(text.splitlines())
    start = f"diff --git {old}/{path} {new}/{path}\nnew file mode 100644\n" if header else ""
    return f"{start}--- /dev/null\n+++ {new}/{path}\n@@ -0,0 +1,{count} @@\n{lines}"


_HONEST = _new_file("a.py", "x = 1\n")


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("conftest.py", _new_file("conftest.py", "import os\nos._exit(0)\n", header=False)),
        ("tests/data.py", _new_file("tests/data.py", "x = 2\n", old="x", new="y")),
    ],
    ids=["behind the lines of another file", "under other prefixes"],
)
def test_a_patch_hides_no_change(task: Task, template: Template, path: str, more: str) -> None:
    """Git applies what our own reading of the text takes for something else."""
    with open_sandbox(template.spec) as sandbox:
        sandbox.write_file("/forged", base64.b64encode((_HONEST + more).encode()))
        trick = "printf '#!/bin/bash\\ncat /forged\\n' > /bin/base64; echo x > any.py"
        assert sandbox.run(trick).ok
        forged = diff(sandbox, template)
    assert forged.text == _HONEST + more
    verdict = grade(task, template, forged)
    assert verdict.dropped_paths == (path,)
    assert verdict.reason is GradeReason.TESTS_FAILED


def test_it_holds_no_file_that_no_patch_has(task: Task, template: Template) -> None:
    assert grade(task, template, Patch(_HONEST)).reason is GradeReason.TESTS_FAILED
    ignored = grade(task, template, Patch(_new_file("a.so", "code\n")))
    assert ignored.reason is GradeReason.EMPTY_PATCH


@pytest.mark.parametrize("text", ["no patch", "--- a/x\n+++ b/x\n", "diff --git a/x", "\ud800"])
def test_an_unreadable_patch_is_its_failure(task: Task, template: Template, text: str) -> None:
    assert grade(task, template, Patch(text)).reason is GradeReason.PATCH_NOT_APPLIED


def test_the_gold_patch_resolves_all_the_same(task: Task, template: Template) -> None:
    assert grade(task, template, Patch(task.gold_patch)).resolved
