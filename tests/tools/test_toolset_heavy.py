"""The toolset heavy: the map of the repository and the editor's tools."""

import pytest
from episodes import Scene

from coding_gym.sandbox import SandboxSpec, default_interpreter, open_sandbox

TOOLSET = "heavy"
SPEC = SandboxSpec(python=default_interpreter())
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
    "json.py": "raise OSError\n",
}


def test_the_map_lists_the_most_used_definitions_first(scene: Scene) -> None:
    rows = scene.reply("repo_map").split("\n")
    assert rows[:2] == ["shop/money.py:", "     4  class Money:"]
    assert "    12  def parse_money(text):" in rows
    assert "     5      def __init__(self, cents):" in rows
    assert not [row for row in rows if "inner" in row]  # no other file can use this name
    assert rows.index("shop/cart.py:") < rows.index("tests/test_cart.py:")


def test_the_map_ranks_tests_last_by_parts_of_paths(scene: Scene) -> None:
    for path in ("latest.py", "a/contest/b.py", "a/test_b.py", "tests/c.py", "conftest.py"):
        scene.sandbox.write_file(path, b"def helper_of_a_path():\n    pass\n")
    files = [row[:-1] for row in scene.reply("repo_map").split("\n") if row.endswith(".py:")]
    assert files == [
        *("shop/money.py", "shop/cart.py", "a/contest/b.py", "latest.py"),
        *("a/test_b.py", "conftest.py", "tests/c.py", "tests/test_cart.py"),
    ]


def test_the_map_is_limited_to_paths_and_length(scene: Scene) -> None:
    tests = scene.reply("repo_map", paths=["./tests/"])
    assert "test_total" in tests
    assert "shop/" not in tests
    definitions = "".join(f"def function_number_{i}():\n    pass\n\n\n" for i in range(200))
    scene.sandbox.write_file("shop/many.py", definitions.encode())
    reply = scene.reply("repo_map")
    assert "def parse_money" in reply
    assert len(reply) < 4000 + 100  # plus the line below the map
    assert not scene.call("repo_map", paths=[1]).ok
    assert scene.call("repo_map", paths=["nul\0", "../..", "é\n", "\ud800"]).ok


@pytest.mark.slow
def test_hostile_files_do_not_stop_the_map(scene: Scene) -> None:
    sandbox = scene.sandbox
    sandbox.write_file("deep.py", b"(" * 5000 + b")" * 5000)
    sandbox.write_file("chain.py", b"x = a" + b".b" * 30_000)
    sandbox.write_file("broken.py", b"def half_written(:\n    pass\nclass \n")
    sandbox.write_file("binary.py", bytes(range(256)) * 10)
    sandbox.write_file("form\ffeed.py", b"x = 1\n\x0c\ndef behind_a_form_feed():\n    pass\n")
    command = "truncate -s 50M big.py; mkfifo pipe.py; ln -s / root; ln -s . self; mkdir dir.py"
    command += "; echo 'x = 1' > locked.py; chmod 000 locked.py; mkdir locked; chmod 000 locked"
    command += "; mkdir -p $(printf 'd/%.0s' {1..1200})"  # more than Python's limit on recursion
    assert scene.call("bash", command=command).ok
    rows = scene.reply("repo_map").split("\n")
    assert "     4  class Money:" in rows
    assert "     3  def behind_a_form_feed():" in rows
    assert not [row for row in rows if "half_written" in row]


def test_bash_works_without_python() -> None:
    with open_sandbox(SandboxSpec(env={"PATH": "/nowhere"})) as sandbox:
        scene = Scene(sandbox, toolset="heavy")
        assert not scene.call("repo_map").ok
        assert scene.call("bash", command="echo on").ok
