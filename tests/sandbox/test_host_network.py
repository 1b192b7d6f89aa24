"""Sandboxes with the host's network, in which environments are built."""

import socket
import threading
from pathlib import Path

import pytest
from sandbox_fixtures import make_sandbox

from coding_gym.host.network import settings


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


def test_sources_of_packages_are_passed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("index/simple", "index/files", "links", "certificates"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "certificates" / "ca.pem").write_text("certificate", encoding="utf-8")
    tmp_path.chmod(0o755)
    config = tmp_path / "pip.conf"
    config.write_text(
        f"[global]\nindex-url = file://{tmp_path}/index/simple\ntimeout = 7\n"
        f"[install]\nfind-links =\n    {tmp_path}/links\n    http://example.org/links\n"
        "constraint = c.txt\n",
        encoding="utf-8",
    )
    for name in ("PIP_FIND_LINKS", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "certificates" / "ca.pem"))
    monkeypatch.setenv("PIP_TIMEOUT", "8")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
    for name in ("SECRET_TOKEN", "PIP_TARGET"):
        monkeypatch.setenv(name, "/opt/other")
    with make_sandbox(network=True) as sandbox:
        variables = dict(line.split("=", 1) for line in sandbox.run("env").output.splitlines())
        listing = sandbox.run(f"cd {tmp_path}; ls; cat certificates/ca.pem").output
        assert not sandbox.run(f"touch {tmp_path}/links/new").ok
    assert (
        variables.items()
        >= {
            "PIP_INDEX_URL": f"file://{tmp_path}/index/simple",
            "PIP_FIND_LINKS": f"{tmp_path}/links http://example.org/links",
            "PIP_CERT": f"{tmp_path}/certificates/ca.pem",
            "PIP_TIMEOUT": "8",
            "HTTPS_PROXY": "http://proxy.example.org:3128",
        }.items()
    )
    assert not {"SECRET_TOKEN", "PIP_TARGET", "PIP_CONSTRAINT", "PIP_CONFIG_FILE"} & {*variables}
    assert listing == "certificates\nindex\nlinks\ncertificate"


def test_missing_folders_of_pip_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "/no/such/folder relative")
    paths = settings().paths
    assert Path("/no/such/folder") not in paths
    assert all(path.is_absolute() for path in paths)
