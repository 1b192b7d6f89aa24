"""The toolset pdb: sessions that are played again, in scripts without pytest and in episodes."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import pytest
from episodes import Scene, call

from coding_gym.sandbox import SandboxSpec, default_interpreter, open_sandbox

pytestmark = pytest.mark.slow

SCRIPT = """\
import sys
from steps import step

for number in range(3):
    print("step", step(number))
if len(sys.argv) > 1:
    step(None)
"""
STEPS = "def step(number):\n    following = number + 1\n    return following\n"

TOOLSET = "pdb"
SPEC = SandboxSpec(python=default_interpreter())
FILES = {"run.py": SCRIPT, "steps.py": STEPS}

Ask = Callable[..., str]


@pytest.fixture
def env(tiny_row: dict[str, Any]) -> Iterator[gym.Env[Any, str]]:
    with gym.make("coding_gym:CodingRepair-v0", tasks=[tiny_row], toolset="pdb") as env:
        yield env


@pytest.fixture
def ask(env: gym.Env[Any, str]) -> Ask:
    env.reset(seed=0)
    return lambda tool, **arguments: str(env.step(call(tool, **arguments))[4]["text"])


def pdb(scene: Scene, command: str) -> str:
    return scene.reply("pdb", command=command)


def test_a_script_is_stepped_through_call_by_call(scene: Scene) -> None:
    assert pdb(scene, "start run.py") == "> /workspace/run.py(1)<module>()\n-> import sys"
    assert pdb(scene, "b steps.py:2, number == 1") == "Breakpoint 1 at /workspace/steps.py:2"
    assert pdb(scene, "c") == ("step 1\n> /workspace/steps.py(2)step()\n-> following = number + 1")
    assert pdb(scene, "p number\nn\np following") == (
        "1\n> /workspace/steps.py(3)step()\n-> return following\n2"
    )
    assert pdb(scene, "w") == (
        "  /workspace/run.py(5)<module>()\n"
        '-> print("step", step(number))\n'
        "> /workspace/steps.py(3)step()\n-> return following"
    )
    assert pdb(scene, "c") == (
        "step 2\nstep 3\nThe program finished.\n[the next command starts it again.]"
    )
    assert pdb(scene, "c").endswith("-> following = number + 1")  # the breakpoint is kept


def test_an_uncaught_exception_is_looked_at_afterwards(scene: Scene) -> None:
    assert "Uncaught exception: stopped where it was raised.\n> /workspace/steps.py(2)step()" in (
        pdb(scene, "start run.py once\nc")
    )
    assert pdb(scene, "p number") == "None"
    assert "run.py(7)" in pdb(scene, "up")
    assert pdb(scene, "c").startswith("The program ended.")


def test_changed_code_begins_the_session_anew_with_its_breakpoints(scene: Scene) -> None:
    pdb(scene, "start run.py")
    pdb(scene, "b steps.py:3")
    pdb(scene, "c")
    answer = scene.reply("rewrite", path="steps.py", start=2, new_code="    following = number + 2")
    assert answer == "steps.py: lines 2 to 2 are now\n     2\t    following = number + 2"
    assert pdb(scene, "c") == (
        "[the code changed: the session began anew, with the breakpoints steps.py:3 "
        "`return following`]\n"
        "> /workspace/run.py(1)<module>()\n-> import sys\n"
        "> /workspace/steps.py(3)step()\n-> return following"
    )
    assert pdb(scene, "p following") == "2"
    scene.reply("rewrite", path="steps.py", new_code="def step(number): return 1")
    assert "[no breakpoint steps.py:3: " in pdb(scene, "restart")


def test_what_comes_out_differently_is_said_once(scene: Scene) -> None:
    pdb(scene, "start run.py")
    pdb(scene, "!import time\np time.time_ns()")
    assert pdb(scene, "p 1") == (
        "[played again, `p time.time_ns()` gave something else than before]\n1"
    )
    assert pdb(scene, "p 2") == "2"


def test_a_session_goes_on_in_a_fork(scene: Scene) -> None:
    pdb(scene, "start run.py\nb steps.py:3\nc")
    state = json.loads(json.dumps(scene.state))
    snapshot = scene.sandbox.snapshot()
    with open_sandbox(SPEC, snapshot=snapshot) as sandbox:
        fork = Scene(sandbox, toolset="pdb", command_timeout_s=20.0, state=state)
        assert pdb(fork, "p following") == pdb(scene, "p following") == "1"


def test_a_program_that_does_not_come_back_is_interrupted(scene: Scene) -> None:
    scene.sandbox.write_file("loop.py", b"print('begun')\nwhile True:\n    pass\n")
    scene.command_timeout_s = 6.0
    pdb(scene, "start loop.py\nn")
    assert pdb(scene, "p 1\nc\np 2") == (
        "1\n[killed: `c` took too long; the session is as it was before]"
    )
    assert pdb(scene, "p 3") == "3"
    assert len(scene.state["pdb"]["commands"]) == 3


def test_what_a_session_cannot_be_given_is_refused(scene: Scene) -> None:
    for command, said in {
        "": "must hold a debugger command",
        " \n ": "must hold a debugger command",
        "n\n" * 11: "at most 10 lines",
        "p " + "1" * 2000: "at most 10 lines of 1000 characters",
        "n\nstart run.py": "must be the first line",
        "start 'run.py": "cannot be read",
        "start everything": "`start` takes FILE.py",
    }.items():
        answer = scene.call("pdb", command=command)
        assert not answer.ok
        assert said in answer.content
    pdb(scene, "start run.py")
    scene.state["pdb"]["commands"] = ["n"] * 60
    assert "at most 60 commands" in pdb(scene, "n")


def test_programs_that_are_not_there_or_do_not_parse(scene: Scene) -> None:
    assert "none.py cannot be read" in pdb(scene, "start none.py")
    assert "there is no module none" in pdb(scene, "start -m none")
    assert "there is no pytest here" in pdb(scene, "start -m pytest")
    scene.sandbox.write_file("bad.py", b"def f(:\n")
    assert "SyntaxError: invalid syntax" in pdb(scene, "start bad.py")
    scene.sandbox.write_file("pdb.py", b"raise OSError\n")
    assert pdb(scene, "start -m steps").endswith("-> def step(number):")


def test_a_program_that_attacks_its_debugger_harms_only_itself(scene: Scene) -> None:
    pdb(scene, "start run.py")
    assert "its process ended early" in pdb(scene, "!import os; os._exit(0)")
    assert "its process ended early" in pdb(scene, "!import os; os.kill(os.getpid(), 9)")
    forged = "!import os; [os.write(f, b'\\n[[1]]\\n') for f in range(3, 9) if not f == 5]"
    assert scene.call("pdb", command=forged).content
    assert "EOF" in pdb(scene, "p input()")
    assert re.search(r"now exiting|exit from pdb interact", pdb(scene, "interact"))  # until 3.12
    assert scene.call("pdb", command="!import sys; sys.stdout = sys.stderr = None").content
    flood = pdb(scene, "p 'x' * 100_000_000")
    assert "bytes left out" in flood
    assert len(flood) < 10_000
    assert pdb(scene, "!import os; os.fork() or os._exit(0)\np 5").endswith("5")
    assert "The program was ended." in pdb(scene, "q")


def test_a_program_that_forges_its_reply_gets_an_answer(scene: Scene) -> None:
    for forged, said in (
        (b'{"how":"stopped","changed":[[]]}', "Error: (no answer)"),
        (b'{"ok":true,"text":"forged","session":{"commands":["q"]}}', "forged"),
    ):
        code = b"import os\nfor f in range(3, 40):\n    try: os.write(f, b'\\n%b')\n" % forged
        code += b"    except OSError: pass\nos._exit(0)\n"
        scene.sandbox.write_file("evil.py", code)
        assert pdb(scene, "start evil.py\nc") == said
        assert pdb(scene, "start run.py").endswith("-> import sys")


def test_breakpoint_calls_in_the_program_stop_there(scene: Scene) -> None:
    scene.sandbox.write_file("own.py", b"x = 1\nbreakpoint()\nx = 2\nimport pdb; pdb.set_trace()\n")
    places = ("(3)<module>()\n-> x = 2", "(2)<module>()\n-> breakpoint()")  # since 3.13
    assert pdb(scene, "start own.py\nc").endswith(places)


def test_lines_are_viewed_and_rewritten(scene: Scene) -> None:
    assert scene.reply("view", path="steps.py", start=2) == (
        "     2\t    following = number + 1\n     3\t    return following"
    )
    assert "none from 9 to 3" in scene.reply("view", path="steps.py", start=9)
    assert "outside the repository" in scene.reply("view", path="/etc/passwd")
    assert scene.reply("rewrite", path="steps.py", start=2, end=3, new_code="    return (") == (
        "steps.py: lines 2 to 3 are now\n     2\t    return (\n[SyntaxError: '(' was never closed, "
        "line 2]"
    )
    assert "from 1 to 2, got 3 and 3" in scene.reply(
        "rewrite", path="steps.py", start=3, new_code=""
    )
    scene.sandbox.write_file("dos.txt", b"one\r\ntwo\r\nthree")
    scene.reply("rewrite", path="dos.txt", start=2, new_code="2\nand a half")
    assert scene.sandbox.read_file("dos.txt") == b"one\r\n2\r\nand a half\r\nthree"
    scene.reply("rewrite", path="dos.txt", start=1, end=3, new_code="")
    assert scene.sandbox.read_file("dos.txt") == b"three"
    scene.reply("rewrite", path="dos.txt", start=1, new_code="last")
    assert scene.sandbox.read_file("dos.txt") == b"last\n"
    scene.reply("bash", command="seq 500 > many.txt; seq 999999 > large.txt")
    assert scene.reply("view", path="many.txt").endswith("   200\t200\n(300 more lines)")


def test_tests_stop_where_one_fails(ask: Ask) -> None:
    answer = ask("pdb", command="l")
    assert "test_shapes.py::test_wide failed: assert 8 == 15" in answer
    assert "> /workspace/test_shapes.py(9)test_wide()\n-> assert area(3, 5) == 15\n" in answer
    end = ask("pdb", command="c")
    assert "1 failed, 1 passed in 0.00s\nThe program finished." in end
    assert "1 failed, 1 passed in 0.00s" in ask("eval", command="python -m pytest -q")
