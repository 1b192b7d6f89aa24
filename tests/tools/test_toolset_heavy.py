"""The toolset heavy: its map and look-ups, checked edits, faults, and what it remembers."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import pytest
from episodes import Scene, call

from coding_gym.sandbox import SandboxSpec, default_interpreter, open_sandbox
from coding_gym.tools.heavy import pytest_arguments
from coding_gym.tools.toolset import Refusal

FILES = {
    "shop/money.py": (
        "RATE = 2\n\n\nclass Money:\n    def __init__(self, cents):\n        self.cents = cents\n\n"
        "    def doubled(self):\n        return Money(self.cents * RATE)\n\n\n"
        "def parse_money(text):\n    def inner(part):\n        return int(part)\n\n"
        "    return Money(inner(text))\n"
    ),
    "shop/cart.py": (
        "from shop.money import Money, parse_money\n\n\ndef total(texts):\n"
        "    return sum(parse_money(text).cents for text in texts)\n\n\ndef unused():\n    pass\n"
    ),
    "tests/test_cart.py": (
        "from shop.cart import total\nfrom shop.money import parse_money\n\n\n"
        "def test_total():\n    assert total(['1', '2']) == 3\n    assert parse_money('1').cents\n"
    ),
    "web/price.js": "export function price(cents) {\n  return cents / 100;\n}\nprice(3);\n",
}


TOOLSET = "heavy"
SPEC = SandboxSpec(python=default_interpreter())


def body(answer: str) -> str:
    """An answer without its number."""
    number, _, rest = answer.partition("\n")
    assert re.fullmatch(r"\[call \d+\]", number)
    return rest


def test_the_map_lists_the_most_used_definitions_first(scene: Scene) -> None:
    shown = body(scene.reply("repo_map"))
    assert shown.startswith("shop/money.py:\n")
    assert "     4  class Money:\n     5      def __init__(self, cents):\n" in shown
    assert "inner" not in shown  # a function's own definitions are used nowhere else
    assert "web/price.js" in shown  # not parsed
    tests = body(scene.reply("repo_map", paths=["tests", "./web/"]))
    assert "test_total" in tests
    assert "shop/" not in tests


def test_the_map_keeps_to_its_budget(scene: Scene) -> None:
    long = "".join(f"def function_number_{i}():\n    pass\n\n\n" for i in range(200))
    scene.sandbox.write_file("shop/many.py", long.encode())
    small = body(scene.reply("repo_map", max_tokens=100))
    assert "class Money" in small
    assert len(small) < 100 * 4 + 150  # and the line below the map
    for arguments in ({"max_tokens": 5}, {"paths": [1]}, {"paths": ["a"] * 21}):
        assert not scene.call("repo_map", **arguments).ok
    assert scene.call("repo_map", paths=["nul\0", "../..", "é\n"]).ok


def test_definitions_and_references_are_found(scene: Scene) -> None:
    def places(tool: str, name: str) -> list[str]:
        return body(scene.reply(tool, name=name)).split("\n")

    for name, place in {
        "Money.doubled": "shop/money.py:8 (function): def doubled(self):",
        "RATE": "shop/money.py:1 (variable): RATE = 2",
        "inner": "shop/money.py:13 (local): def inner(part):",
    }.items():
        assert places("find_definition", name) == [place]
    assert places("find_definition", "price")[0].startswith("web/price.js:1 (mention)")
    assert places("find_references", "parse_money()") == [
        "shop/cart.py:1: from shop.money import Money, parse_money",
        "shop/cart.py:5: return sum(parse_money(text).cents for text in texts)",
        "tests/test_cart.py:2: from shop.money import parse_money",
        "tests/test_cart.py:7: assert parse_money('1').cents",
    ]
    scene.sandbox.write_file("uses.py", b"x = 1\n" + b"print(x)\n" * 500)
    assert len(places("find_references", "x")) == 31
    assert not scene.call("find_definition", name="pars").ok
    for name in ("", "a b", "x" * 500, 3):
        assert not scene.call("find_definition", name=name).ok


@pytest.mark.slow
def test_hostile_files_do_not_stop_the_map(scene: Scene) -> None:
    box = scene.sandbox
    box.write_file("deep.py", b"(" * 5000 + b")" * 5000)
    box.write_file("chain.py", b"x = a" + b".b" * 30_000)
    box.write_file("minus.py", b"x = " + b"-" * 50_000 + b"1\n")
    box.write_file("broken.py", b"def half_written(:\n    pass\nclass \n")
    box.write_file("binary.py", bytes(range(256)) * 10)
    box.write_file("long.js", b"function f(" + b" (" * 100_000 + b"\n" + b'"' * 200_000)
    box.write_file("bad\nname\x1b[2J.py", b"def in_a_bad_name():\n    pass\n")
    code = b'"""def in_a_text(): pass"""\n# def in_a_comment(): pass\n' + b"value = 1\n" * 40_000
    for number in range(6):
        box.write_file(f"large/module_{number}.py", code)
    links = "truncate -s 50M big.py; mkfifo pipe.py; ln -s / root; ln -s . self; mkdir dir.py"
    deep = (
        "p=.; for i in $(seq 80); do p=$p/d; done; mkdir -p $p; echo 'def too_deep(): 0' > $p/z.py"
    )
    assert scene.call("bash", command=f"{links}; {deep}").ok
    shown = body(scene.reply("repo_map", max_tokens=2000))
    assert "class Money" in shown
    for name in ("broken.py", "long.js", "bad\\nname\\x1b[2J.py:\n     1  def in_a_bad_name():"):
        assert name in shown
    for name in ("\x1b", "too_deep", "in_a_text", "in_a_comment"):
        assert name not in shown


def test_an_edit_is_made_only_if_the_syntax_stays_whole(scene: Scene) -> None:
    assert scene.call("edit", path="shop/money.py", old="RATE = 2", new="RATE = 3").ok
    assert scene.sandbox.read_file("shop/money.py").startswith(b"RATE = 3\n")
    before = scene.sandbox.read_file("shop/cart.py")
    answer = scene.call("edit", path="shop/cart.py", old="total(texts):", new="total(texts:")
    assert not answer.ok
    assert ">     4  def total(texts:" in answer.content
    assert scene.sandbox.read_file("shop/cart.py") == before
    for path, content in (("n.py", "return (\n"), ("n.json", '{"a": }'), ("n.sh", "if true\n")):
        assert not scene.call("create", path=path, content=content).ok
        assert not scene.sandbox.run(f"ls {path}").ok
    assert scene.call("create", path="run.sh", content="if true; then :; fi\n").ok
    assert scene.call("create", path="x.txt", content="any(").ok


def test_a_broken_file_can_be_repaired_step_by_step(scene: Scene) -> None:
    scene.sandbox.write_file("broken.py", b"def f(:\n    pass\ndef g(:\n    pass\n")
    first = scene.call("edit", path="broken.py", old="def f(:", new="def f():")
    assert first.ok
    assert "SyntaxError" in first.content
    last = scene.call("edit", path="broken.py", old="def g(:", new="def g():")
    assert last.ok
    assert "syntax error" not in last.content


def test_an_edit_that_does_not_fit_is_refused(scene: Scene) -> None:
    scene.reply("bash", command="ln -s /etc/passwd out; head -c 999 /dev/zero > zeros")
    plain = {"path": "shop/money.py", "old": "RATE", "new": "y"}
    for change in (
        *({"old": "Money"}, {"old": "def parse_money( text ):"}, {"old": ""}, {"new": "RATE"}),
        *({"path": path} for path in ("/etc/passwd", "out", "zeros")),
    ):
        assert not scene.call("edit", **(plain | change)).ok, change
    for path in ("out", "shop", "../evil.py"):
        assert not scene.call("create", path=path, content="x = 1\n").ok
    assert scene.sandbox.read_file("shop/money.py") == FILES["shop/money.py"].encode()


def test_notes_head_every_tenth_answer(scene: Scene) -> None:
    scene.reply("note", text="the rate\n is wrong")
    for _ in range(8):
        assert "the rate is wrong" not in scene.reply("bash", command="true")
    assert "the rate is wrong" in scene.reply("bash", command="true")
    assert "the rate is wrong" in scene.reply("notes")
    assert not scene.call("note", text="x" * 501).ok
    assert not scene.call("note", text=" \n").ok
    for number in range(30):
        scene.reply("note", text=f"note {number}")
    assert len(scene.state["notes"]) == 20


def test_repeated_failures_bring_a_hint(scene: Scene) -> None:
    failing = {"path": "shop/cart.py", "old": "nothing", "new": "something"}
    hints = ["Hint" in scene.reply("edit", **failing) for _ in range(3)]
    assert hints == [False, True, False]


def test_memory_is_json_and_goes_on_in_a_fork(scene: Scene) -> None:
    scene.reply("note", text="one")
    scene.reply("bash", command="seq 200")
    fork = Scene(scene.sandbox, toolset="heavy", state=json.loads(json.dumps(scene.state)))
    calls = (("bash", {"command": "seq 200"}), ("notes", {}))
    answers = [[each.reply(t, **a) for t, a in calls] for each in (scene, fork)]
    assert answers[0] == answers[1]
    assert len(answers[0][0]) < 200  # the number of an equal answer


def test_without_python_bash_remains() -> None:
    with open_sandbox(SandboxSpec(env={"PATH": "/nowhere"})) as sandbox:
        scene = Scene(sandbox, toolset="heavy")
        assert not scene.call("repo_map").ok
        assert scene.call("bash", command="echo on").ok


# For locate_fault: visible tests run line by line, in episodes.
PROGRAM = """\
def sign(x):
    if x < 0:
        result = -1
    elif x == 0:
        result = 1
    else:
        result = 1
    return result
"""
TESTS = """\
import os
import pytest
from signs import sign

@pytest.mark.parametrize("x", [1, 5, 9])
def test_plus(x):
    assert sign(x) == 1

def test_minus():
    assert sign(-3) == -1

def test_zero():
    print("noise"); os.write(1, b'{"lines": []}')
    assert sign(0) == 0

@pytest.mark.skip
def test_skipped():
    assert sign("x")

def test_other():
    raise OSError("no\\nsuch \\x1b[2J thing")
"""

Ask = Callable[..., str]


@pytest.fixture(scope="module")
def env() -> Iterator[gym.Env[Any, str]]:
    row = {
        "instance_id": "signs",
        "problem_statement": "sign(0) gives 1",
        "files": {"signs.py": PROGRAM, "tests/test_signs.py": TESTS, "json.py": "raise OSError\n"},
        "patch": "--- a/signs.py\n+++ b/signs.py\n@@ -5 +5 @@\n-        result = 1\n"
        "+        result = 0\n",
        "test_patch": "--- /dev/null\n+++ b/test_hidden.py\n@@ -0,0 +1,5 @@\n"
        "+from signs import sign\n+\n+\n+def test_sign():\n+    assert sign(0) == 0\n",
        "FAIL_TO_PASS": ["test_hidden.py::test_sign"],
        "PASS_TO_PASS": [],
    }
    with gym.make("coding_gym:CodingRepair-v0", tasks=[row], toolset="heavy") as env:
        yield env


@pytest.fixture
def ask(env: gym.Env[Any, str]) -> Ask:
    env.reset(seed=0)

    return lambda tool, **arguments: re.sub(
        r"^\[call \d+\]\n", "", env.step(call(tool, **arguments))[4]["text"]
    )


@pytest.mark.slow
def test_the_line_that_only_the_failing_test_runs_comes_first(ask: Ask) -> None:
    answer = ask("locate_fault", test="tests/test_signs.py::test_zero").split("\n")
    assert answer[3] == "1.00 (1 failed, 0 passed)  signs.py:5: result = 1"
    assert answer[4] == "0.50 (1 failed, 3 passed)  signs.py:4: elif x == 0:"
    assert answer[5] == "0.45 (1 failed, 4 passed)  signs.py:8: return result"
    assert not [line for line in answer[3:] if "test_signs" in line]
    assert ask("locate_fault").startswith("2 failing and 4 passing")
    chosen = ask("locate_fault", test="python -m pytest -q tests -k 'zero or minus'")
    assert chosen.startswith("1 failing and 1 passing")


@pytest.mark.slow
def test_tests_that_cannot_be_compared_are_refused(ask: Ask) -> None:
    ask("create", path="test_broken.py", content="import no_such_module\n")
    ask("create", path="test_exit.py", content="import os\ndef test():\n    os._exit(0)\n")
    for test in (
        *("tests/test_signs.py::test_plus", "tests/test_signs.py::test_x", "no_such_file.py"),
        *("test_broken.py", "test_exit.py"),
    ):
        assert ask("locate_fault", test=test).startswith("Error: ")


def test_commands_are_read_as_pytests_arguments() -> None:
    assert pytest_arguments("") == ([], [])
    assert pytest_arguments("tests/test_a.py") == (["tests/test_a.py"], [])
    assert pytest_arguments("A=1 pytest -x a.py::b a.py::c") == (
        ["-x", "a.py"],
        ["a.py::b", "a.py::c"],
    )
    assert pytest_arguments("t.py::test[a b-'c']") == (["t.py"], ["t.py::test[a b-'c']"])
    for command in ("rm -rf .", "python a.py", "pytest 'a", "x" * 3000, "a\0b"):
        with pytest.raises(Refusal):
            pytest_arguments(command)
