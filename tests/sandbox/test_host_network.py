"""Sandboxes with the host's network, in which environments are built."""

import socket
import threading
from pathlib import Path

import pytest
from sandbox_fixtures import make_sandbox

from coding_gym.host.network import settings
from coding_gym.sandbox import default_interpreter


def test_a_server_of_the_host_is_reached_with_the_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: server.accept()[0].close(), daemon=True)
        thread.start()
        command = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo reached"
        with make_sandbox(network=True) as opened:
            assert opened.run(command).output == "reached\n"
        thread.join()


def test_the_rest_is_as_closed_as_without() -> None:
    with make_sandbox(network=True) as sandbox:
        assert sandbox.run("id -u; grep CapEff /proc/self/status").output.split() == [
            *("1000", "CapEff:", "0" * 16)
        ]
        assert "Read-only file system" in sandbox.run("echo > /etc/resolv.conf").output


def test_name_servers_are_those_of_the_host() -> None:
    with make_sandbox(network=True) as sandbox:
        wanted = Path("/etc/resolv.conf").read_text(encoding="utf-8")
        assert sandbox.run("cat /etc/resolv.conf").output == wanted


@pytest.fixture
def pip_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings in every form that pip knows, with folders that they name."""
    for name in ("index/simple", "index/files", "links", "more", "certificates"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "certificates" / "ca.pem").write_text("certificate", encoding="utf-8")
    tmp_path.chmod(0o755)
    config = tmp_path / "pip.conf"
    config.write_text(
        f"[global]\nindex-url = file://{tmp_path}/index/simple\n"
        f"[install]\nfind-links =\n    {tmp_path}/links\n    http://example.org/links\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "more"))
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "certificates" / "ca.pem"))
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
    monkeypatch.setenv("SECRET_TOKEN", "x")
    return tmp_path


def test_settings_of_pip_come_along(pip_of_the_host: Path) -> None:
    with make_sandbox(network=True, python=default_interpreter()) as sandbox:
        config = sandbox.run("cat /etc/pip.conf").output
        assert f"index-url = file://{pip_of_the_host}/index/simple" in config
        assert f"\t{pip_of_the_host}/links\n" in config
        names = sandbox.run("env").output
        assert "HTTPS_PROXY=http://proxy.example.org:3128\n" in names
        assert "SECRET_TOKEN" not in names
        assert "PIP_CONFIG_FILE" not in names
        listing = sandbox.run(f"cd {pip_of_the_host}; ls; cat certificates/ca.pem").output
        assert listing == "certificates\nindex\nlinks\nmore\ncertificate"
        refused = sandbox.run(f"touch {pip_of_the_host}/links/new")
        assert "Read-only file system" in refused.output


def test_other_settings_of_pip_stay_out(
    pip_of_the_host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (pip_of_the_host / "pip.conf").open("a", encoding="utf-8") as config:
        config.write("timeout = 7\n--build_constraint = b.txt\n[DEFAULT]\nconstraint = c.txt\n")
    monkeypatch.setenv("PIP_CONSTRAINT", "/etc/pip/constraint.txt")
    monkeypatch.setenv("PIP_TARGET", "/opt/packages")
    with make_sandbox(network=True, python=default_interpreter()) as sandbox:
        settings = sandbox.run("cat /etc/pip.conf; env").output.lower()
    assert "timeout = 7" in settings
    assert "constraint" not in settings
    assert "target" not in settings


def test_missing_folders_of_pip_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "/no/such/folder relative")
    paths = settings().paths
    assert Path("/no/such/folder") not in paths
    assert all(path.is_absolute() for path in paths)
