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


def test_the_map_shows_what_is_used_most_first(scene: Scene) -> None:
    shown = body(scene.reply("repo_map"))
    assert shown.startswith("shop/money.py:\n")
    assert "     4  class Money:\n     5      def __init__(self, cents):\n" in shown
    assert "    12  def parse_money(text):\n" in shown
    assert "inner" not in shown  # what is defined in a function is nobody else's
    assert "Files that are not parsed:\n        web/price.js\n(" in shown
    assert shown.endswith("definitions in 3 source files, the most used ones.)")


def test_the_map_is_cut_to_its_budget_and_to_paths(scene: Scene) -> None:
    long = "".join(f"def function_number_{i}():\n    pass\n\n\n" for i in range(200))
    scene.sandbox.write_file("shop/many.py", long.encode())
    small = body(scene.reply("repo_map", max_tokens=100))
    assert "class Money" in small
    assert len(small) < 100 * 4 + 150  # and the line below the map
    tests = body(scene.reply("repo_map", paths=["tests", "./web/"]))
    assert "test_total" in tests
    assert "price.js" in tests
    assert "shop/" not in tests
    assert "below the paths given" in tests
    assert body(scene.reply("repo_map", paths=["/etc"])).startswith("No definitions were found")


def test_definitions_and_references_are_found(scene: Scene) -> None:
    def places(tool: str, name: str) -> str:
        return body(scene.reply(tool, name=name))

    assert places("find_definition", "Money.doubled") == (
        "shop/money.py:8 (function): def doubled(self):"
    )
    assert places("find_definition", "RATE") == "shop/money.py:1 (variable): RATE = 2"
    assert places("find_definition", "cents").startswith("shop/money.py:6 (attribute): self.cents")
    assert places("find_definition", "inner") == "shop/money.py:13 (local): def inner(part):"
    assert places("find_definition", "price").split("\n") == [  # JavaScript is not parsed
        "web/price.js:1 (mention): export function price(cents) {",
        "web/price.js:4 (mention): price(3);",
    ]
    assert places("find_references", "parse_money()").split("\n") == [
        "shop/cart.py:1: from shop.money import Money, parse_money",
        "shop/cart.py:5: return sum(parse_money(text).cents for text in texts)",
        "tests/test_cart.py:2: from shop.money import parse_money",
        "tests/test_cart.py:7: assert parse_money('1').cents",
    ]
    assert places("find_references", "price").endswith("\nweb/price.js:4: price(3);")
    missing = scene.call("find_definition", name="pars")
    assert not missing.ok
    assert "'pars' is defined nowhere" in missing.content
    assert "there are parse_money" in missing.content
    assert "is used nowhere" in scene.reply("find_references", name="unused")


def test_many_places_are_capped(scene: Scene) -> None:
    scene.sandbox.write_file("uses.py", b"x = 1\n" + b"print(x)\n" * 500)
    shown = body(scene.reply("find_references", name="x")).split("\n")
    assert shown[-1] == "(only the first 30 are shown)"
    assert len(shown) == 31


def test_hostile_files_do_not_stop_the_map(scene: Scene) -> None:
    box = scene.sandbox
    box.write_file("deep.py", b"(" * 5000 + b")" * 5000)
    box.write_file("chain.py", b"x = a" + b".b" * 30_000)
    box.write_file("minus.py", b"x = " + b"-" * 50_000 + b"1\n")
    box.write_file("broken.py", b"def half_written(:\n    pass\nclass \n")
    box.write_file("mac.py", b"x = 1\rdef with_mac_line_ends():\r    pass\r")
    box.write_file("binary.py", bytes(range(256)) * 10)
    box.write_file("long.js", b"function f(" + b" (" * 100_000 + b"\n" + b'"' * 200_000)
    box.write_file("bad\nname\x1b[2J.py", b"def in_a_bad_name():\n    pass\n")
    made = scene.reply(
        "bash",
        command="truncate -s 50M big.py; mkfifo pipe.py; ln -s / root; ln -s /etc/passwd pass.py;"
        "ln -s . self; mkdir dir.py; p=.; for i in $(seq 80); do p=$p/d; done; mkdir -p $p;"
        "echo 'def too_deep(): pass' > $p/z.py",
    )
    assert "exit code" not in made
    shown = body(scene.reply("repo_map", max_tokens=2000))
    assert "class Money" in shown
    assert "mac.py:\n     1  x = 1" in shown
    not_parsed = shown.partition("Files that are not parsed:\n")[2]
    assert "        broken.py\n" in not_parsed
    assert "        long.js\n" in not_parsed
    assert "bad\\nname\\x1b[2J.py:\n     1  def in_a_bad_name():" in shown
    assert "\x1b" not in shown
    assert "too_deep" not in shown
    assert "root" not in shown
    assert re.search(r"\d files were not read: too large, no text, or too many", shown)


def test_a_tree_of_many_megabytes_is_mapped_all_the_same(scene: Scene) -> None:
    code = b'"""def in_a_text(): pass"""\n# def in_a_comment(): pass\n' + b"value = 1\n" * 40_000
    for number in range(6):
        scene.sandbox.write_file(f"large/module_{number}.py", code)
    scene.sandbox.write_file("large/end.py", b"class End:\n    async def run_end(self): End()\n")
    shown = body(scene.reply("repo_map", paths=["large"]))
    assert "     1  class End:\n     2      async def run_end" in shown
    assert "in_a_" not in shown


def test_names_and_numbers_that_cannot_be_are_refused(scene: Scene) -> None:
    for arguments in ({"name": ""}, {"name": "a b"}, {"name": "x" * 500}, {"name": 3}, {}):
        assert "Error: " in scene.reply("find_definition", **arguments)
    assert "between 100 and 8000, got 5" in scene.reply("repo_map", max_tokens=5)
    assert "must be a list of paths" in scene.reply("repo_map", paths=[1])
    assert "at most 20 paths" in scene.reply("repo_map", paths=["a"] * 21)
    assert scene.call("repo_map", paths=["nul\0", "../..", "é\n"]).ok


def test_an_edit_is_made_and_shown(scene: Scene) -> None:
    answer = scene.call("edit", path="shop/money.py", old="RATE = 2", new="RATE = 3")
    assert answer.ok
    assert body(answer.content).startswith("shop/money.py was edited:\n     1\tRATE = 3\n")
    assert scene.sandbox.read_file("shop/money.py").startswith(b"RATE = 3\n")


def test_an_edit_that_breaks_the_syntax_is_not_made(scene: Scene) -> None:
    before = scene.sandbox.read_file("shop/cart.py")
    answer = scene.call(
        "edit", path="shop/cart.py", old="def total(texts):", new="def total(texts:"
    )
    assert not answer.ok
    assert "not edited: it would leave a syntax error in shop/cart.py" in answer.content
    assert "SyntaxError" in answer.content
    assert ">     4  def total(texts:" in answer.content
    assert scene.sandbox.read_file("shop/cart.py") == before
    assert "not created" in scene.reply("create", path="new.py", content="return (\n")
    assert "not created" in scene.reply("create", path="new.json", content='{"a": }')
    assert "new" not in scene.reply("bash", command="ls")


def test_a_file_that_was_broken_before_can_be_mended_step_by_step(scene: Scene) -> None:
    scene.sandbox.write_file("broken.py", b"def f(:\n    pass\ndef g(:\n    pass\n")
    first = scene.call("edit", path="broken.py", old="def f(:", new="def f():")
    assert first.ok
    assert "(the file has a syntax error, as before the edit: SyntaxError" in first.content
    last = scene.call("edit", path="broken.py", old="def g(:", new="def g():")
    assert last.ok
    assert "syntax error" not in last.content


def test_other_languages_are_checked_where_their_program_is_there(scene: Scene) -> None:
    assert "not created" in scene.reply("create", path="run.sh", content="if true; then\n")
    assert scene.call("create", path="run.sh", content="if true; then :; fi\n").ok
    answer = scene.call("create", path="x.rb", content="def x\nend\n")
    if scene.sandbox.run("command -v ruby").ok:
        assert answer.content.endswith("x.rb was created, 2 lines.")
    else:
        assert "(its syntax was not checked: there is no ruby here)" in answer.content
    assert body(scene.reply("create", path="x.txt", content="any(")) == "x.txt was created, 1 line."


def test_edits_that_cannot_be_made_say_why(scene: Scene) -> None:
    def refused(**arguments: str) -> str:
        return scene.reply("edit", **{"path": "shop/money.py", "old": "x", "new": "y"} | arguments)

    assert "occurs 3 times in shop/money.py, at lines 4, 9, 16" in refused(old="Money")
    spaced = refused(old="def parse_money( text ):")
    assert "does not occur in shop/money.py" in spaced
    moved = refused(old="def doubled(self):\n  return 3")
    assert "its first line stands here" in moved
    assert "     8\t    def doubled(self):" in moved
    assert "must not be empty" in refused(old="")
    assert "are the same" in refused(new="x")
    assert "is outside the repository" in refused(path="/etc/passwd")
    scene.reply("bash", command="ln -s /etc/passwd out; head -c 999 /dev/zero > zeros")
    assert "is outside the repository" in refused(path="out")
    assert "binary file" in refused(path="zeros")
    assert "is outside the repository" in scene.reply("create", path="out", content="x")
    assert "exists already" in scene.reply("create", path="shop", content="x")
    assert "outside" in scene.reply("create", path="../evil.py", content="x = 1\n")


def test_an_answer_that_was_given_lately_is_told_by_its_number(scene: Scene) -> None:
    first = scene.reply("bash", command="seq 200")
    assert first.startswith("[call 1]\n1\n2\n")
    assert scene.reply("bash", command="seq 200") == (
        "[call 2]\n(bash: the same as the answer to call 1)"
    )
    assert scene.reply("bash", command="echo short") == "[call 3]\nshort"
    assert scene.reply("bash", command="echo short") == "[call 4]\nshort"
    for _ in range(18):
        scene.reply("bash", command="true")
    assert scene.reply("bash", command="seq 200") == first.replace("[call 1]", "[call 23]")


def test_notes_come_back(scene: Scene) -> None:
    assert body(scene.reply("notes")) == "There are no notes."
    assert body(scene.reply("note", text="the rate\n is wrong")) == "noted (1)"
    for _ in range(7):
        scene.reply("bash", command="true")
    assert scene.reply("bash", command="true") == (
        "[call 10]\nYour notes:\n- the rate is wrong\n\n(no output)"
    )
    assert body(scene.reply("notes")) == "Your notes:\n- the rate is wrong"
    assert "at most 500 characters" in scene.reply("note", text="x" * 501)
    assert "must not be empty" in scene.reply("note", text=" \n")
    for number in range(30):
        scene.reply("note", text=f"note {number}")
    assert len(scene.state["notes"]) == 20


def test_repeated_failures_bring_a_hint(scene: Scene) -> None:
    def fail() -> str:
        return scene.reply("edit", path="shop/cart.py", old="nothing", new="something")

    assert "Hint" not in fail()
    assert "\nHint: show the lines with `bash`" in fail()
    assert "Hint" not in fail()
    assert scene.call("edit", path="shop/cart.py", old="unused", new="used").ok
    assert "Hint" not in fail()
    assert "Hint" not in scene.reply("no_such_tool")
    assert "Hint: a call looks like" in scene.reply("no_such_tool")


def test_what_is_remembered_is_json_and_says_the_same_in_a_fork(scene: Scene) -> None:
    scene.reply("note", text="one")
    scene.reply("bash", command="seq 200")
    scene.reply("edit", path="a", old="b", new="c")
    fork = Scene(scene.sandbox, toolset="heavy", state=json.loads(json.dumps(scene.state)))
    calls = (("bash", {"command": "seq 200"}), ("notes", {}))
    assert [scene.reply(t, **a) for t, a in calls] == [fork.reply(t, **a) for t, a in calls]
    assert scene.call("submit").submitted


def test_without_python_the_map_says_so(scene: Scene) -> None:
    with open_sandbox(SandboxSpec(env={"PATH": "/nowhere"})) as sandbox:
        answer = Scene(sandbox, toolset="heavy").reply("repo_map")
    assert answer.endswith("there is no `python` here to do it with")


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


def test_the_line_that_only_the_failing_test_runs_comes_first(ask: Ask) -> None:
    answer = ask("locate_fault", test="tests/test_signs.py::test_zero").split("\n")
    assert answer[0] == "1 failing and 4 passing tests were compared, 1 other failing left aside."
    assert answer[1] == (
        "tests/test_signs.py::test_zero: AssertionError: assert 1 == 0 "
        "at tests/test_signs.py:14 in test_zero"
    )
    assert answer[3] == "1.00 (1 failed, 0 passed)  signs.py:5: result = 1"
    assert answer[4] == "0.50 (1 failed, 3 passed)  signs.py:4: elif x == 0:"
    assert answer[5] == "0.45 (1 failed, 4 passed)  signs.py:8: return result"
    assert not [line for line in answer[3:] if "test_signs" in line]


def test_all_tests_and_pytest_commands_are_taken(ask: Ask) -> None:
    whole = ask("locate_fault")
    assert whole.startswith("2 failing and 4 passing tests were compared.\n")
    assert "OSError: no at tests/test_signs.py:21 in test_other" in whole
    chosen = ask("locate_fault", test="python -m pytest -q tests -k 'zero or minus'")
    assert chosen.startswith("1 failing and 1 passing tests were compared.\n")


def test_what_cannot_be_located_says_why(ask: Ask) -> None:
    def refused(test: str) -> str:
        answer = ask("locate_fault", test=test)
        assert answer.startswith("Error: ")
        return answer

    assert "none of these tests fails (4 pass, 2 others fail)" in refused(
        "tests/test_signs.py::test_plus"
    )
    assert "there is no test 'tests/test_signs.py::test_x'" in refused(
        "tests/test_signs.py::test_x"
    )
    assert "none of these tests fails (0 pass)" in refused("no_such_file.py")
    ask("create", path="test_broken.py", content="import no_such_module\n")
    assert "test_broken.py: E   ModuleNotFoundError: No module" in refused("test_broken.py")
    ask("create", path="test_exit.py", content="import os\ndef test():\n    os._exit(0)\n")
    assert "its process ended early (exit code 0)" in refused("test_exit.py")


def test_a_test_that_forges_the_reply_gets_an_answer(ask: Ask) -> None:
    forged = "\\n" + '{"ok":true,"text":[1],"problem":5}'
    code = f"import os\nfor f in range(3, 40):\n    try: os.write(f, b'{forged}')\n"
    code += "    except OSError: pass\nos._exit(0)\n"
    ask("create", path="test_e.py", content=code)
    assert ask("locate_fault", test="test_e.py").endswith("line by line: 5")


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
