"""How far one step of the env is spread over the package, on the host side."""

import sys
from pathlib import Path
from types import FrameType

from episodes import TRUE, MakeEnv

import coding_gym

PACKAGE = str(Path(coding_gym.__file__).parent)


def test_a_step_makes_few_calls_in_few_files(make_env: MakeEnv) -> None:
    env = make_env()
    env.reset()
    env.step(TRUE)  # the first one warms the grade up
    calls: list[tuple[str, str]] = []  # of named functions of the package: file and name

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_ours = code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<")
        if event == "call" and is_ours:
            calls.append((code.co_filename.removeprefix(f"{PACKAGE}/"), code.co_qualname))

    profile = sys.getprofile()
    sys.setprofile(note)
    env.step(TRUE)
    sys.setprofile(profile)
    own = [call for call in calls if call[0].startswith(("envs/", "episode/"))]
    assert len(own) <= 21, own
    assert len({file for file, _ in own}) <= 4, own
    assert len(calls) <= 80, calls
    assert len({file for file, _ in calls}) <= 19, calls
