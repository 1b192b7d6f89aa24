"""Links at a sandbox's root: for programs that know their project by an absolute path."""

from dataclasses import replace

import pytest

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import SandboxSpec, open_sandbox

SPEC = SandboxSpec(links={"/app": "/workspace", "/srv/data": "/tmp/data"})


def test_links_lead_to_what_they_name() -> None:
    with open_sandbox(SPEC, backend="namespace") as sandbox:
        sandbox.write_file("a.txt", b"1")
        assert sandbox.run("cat /app/a.txt; echo 2 > /app/b.txt; cat b.txt").output == "12\n"
        assert sandbox.run("mkdir /tmp/data && touch /srv/data/c && ls /tmp/data").output == "c\n"
        assert not sandbox.run("rm /app || touch /srv/x").ok


def test_a_backend_without_a_root_of_its_own_refuses_links() -> None:
    with pytest.raises(InvalidArgumentError, match="/app"):
        open_sandbox(SPEC, backend="landlock")


def test_a_link_must_be_below_the_root() -> None:
    with pytest.raises(InvalidArgumentError, match="app"):
        open_sandbox(replace(SPEC, links={"app": "/workspace"}), backend="namespace")
