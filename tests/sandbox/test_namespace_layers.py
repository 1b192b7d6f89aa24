"""Layers, mounts and links as commands find them, however often they change outside."""

import os
from pathlib import Path

import pytest
from sandbox_fixtures import BACKEND, make_sandbox

from coding_gym.sandbox import Mount, SandboxLimits
from coding_gym.sandbox.zygotes import stop_zygotes


def test_a_changed_or_replaced_layer_is_seen(tmp_path: Path) -> None:
    layer = tmp_path / "layer"
    for text in ("old", "new"):
        layer.mkdir()
        (layer / "file").write_text(text, encoding="utf-8")
        os.chown(layer, *BACKEND.owner())
        for seconds in (1000, 2000):
            os.utime(layer, (seconds, seconds))
            with make_sandbox(layers=(layer,)) as sandbox:
                assert sandbox.run("stat -c %Y .; cat file").output == f"{seconds}\n{text}"
        layer.rename(tmp_path / text)


@pytest.mark.slow
def test_many_layers_are_never_mixed_up(tmp_path: Path) -> None:
    """The zygote shows so many folders at a time, and uses their places again."""
    stop_zygotes()
    for number in range(60):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "file").write_text(str(number), encoding="utf-8")
        os.chown(tmp_path / str(number) / "file", *BACKEND.owner())
        os.utime(tmp_path / str(number), (1000, 1000))

    def open_and_look(number: int, **others: int) -> str:
        limits = SandboxLimits(**others)
        with make_sandbox(layers=(tmp_path / str(number),), limits=limits) as sandbox:
            return sandbox.run("cat file").output

    with make_sandbox(layers=(tmp_path / "0",)) as first:
        for number in range(60):
            assert open_and_look(number) == str(number)
        assert first.run("cat file; echo more > file; cat file").output == "0more\n"
    assert open_and_look(0, num_processes=100) == "0"
    for number in (0, 30, *range(59, 40, -1), 1, 2, 0):
        assert open_and_look(number) == str(number)


def test_mounts_change_no_date_outside_the_sandboxs_own_folders(tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    (shown / "inner").mkdir(parents=True)
    for folder in (shown, shown / "inner"):
        os.chown(folder, *BACKEND.owner())
        os.utime(folder, (5000, 5000))
    libraries = sorted(path for path in Path("/lib").glob("*/*") if path.is_dir())
    existing = next(path for path in libraries if "linux" not in str(path))
    targets = ("/home", "/opt/a/b", "/opt/a/b/inner", "/dev/shm/c/d", "/tmp/e", str(existing))
    mounts = tuple(Mount(source=shown, target=target, writable=True) for target in targets)
    with make_sandbox(mounts=mounts) as sandbox:
        arguments = "/opt/a /dev/shm /dev/shm/c /tmp /home /opt/a/b/inner"
        dates = sandbox.run(f"stat -c %Y {arguments}").output.split()
    assert dates == ["946684800"] * 4 + ["5000"] * 2


def test_modes_do_not_depend_on_the_owners_umask() -> None:
    stop_zygotes()  # the next one starts with the umask of now
    before = os.umask(0o077)
    try:
        with make_sandbox() as sandbox:
            modes = sandbox.run("umask; stat -c %a / /home/agent /tmp /workspace").output.split()
    finally:
        os.umask(before)
    assert modes == ["0022", "755", "755", "1777", "755"]
