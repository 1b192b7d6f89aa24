"""The files, namespaces, variables and network of commands in a namespace sandbox."""

import os
import shutil
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_fixtures import (
    BACKEND,
    MakeLayer,
    make_sandbox,
    run_on,
)

import coding_gym
from coding_gym.sandbox import Sandbox, SandboxLimits, SandboxSpec, default_interpreter
from coding_gym.sandbox.zygotes import stop_zygotes

_LOOPBACK = """
import socket
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    server = socket.create_server((host, 0), family=family)
    socket.create_connection(server.getsockname()[:2]).close()
print(socket.gethostbyname(socket.gethostname()), socket.if_nameindex())
"""
_COMMIT = "git init -q . && git commit -q --allow-empty -m x"
_AMEND = "EDITOR=vi git commit -q --allow-empty --amend && git log --format='%s %an'"
# Commands, and their output.
_WORLD = {
    "id -u; id -g; id -un; id -gn": "1000\n1000\nagent\nagent\n",
    "touch a; stat -c %u:%g a . ~ /tmp": "1000:1000\n" * 4,
    "echo > m.py; python -c 'import m'; ls": "m.py\n",
    "o='print(id(object()))'; [ $(python -c $o) = $(python -c $o) ] && echo same": "same\n",
    f"python -c '{_LOOPBACK}'": "127.0.0.1 [(1, 'lo')]\n",
    f"{_COMMIT} && {_AMEND}": "x agent\n",
}


@pytest.mark.parametrize(("command", "printed"), _WORLD.items())
def test_commands_print_what_an_ordinary_system_prints(
    sandbox: Sandbox, command: str, printed: str
) -> None:
    assert sandbox.run(command).output == printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("python -m venv v && v/bin/pip install six", "no-network-in-this-sandbox"),
        ("npm init && npm install left-pad", "ENOTCACHED"),
    ],
)
def test_installers_do_not_prompt_or_wait(sandbox: Sandbox, command: str, message: str) -> None:
    if command.startswith("npm") and shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    result = sandbox.run(command, timeout_s=60)
    assert (result.ok, result.timed_out, message in result.output) == (False, False, True)


def test_only_the_allow_list_of_folders_exists(sandbox: Sandbox) -> None:
    top = set(sandbox.run("ls -A /").output.split())
    prefix = default_interpreter().prefix.parts
    libraries = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}
    made = {"dev", "etc", "home", "opt", "proc", "run", "sandbox", "tmp", "usr", "var", "workspace"}
    assert made <= top
    assert top <= made | libraries | set(prefix[1:2])


@pytest.mark.parametrize("name", ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"])
def test_a_sandbox_has_a_private_namespace(name: str) -> None:
    with make_sandbox() as one, make_sandbox() as other:
        link = f"/proc/self/ns/{name}"
        ids = [sandbox.run(f"readlink {link}").output.strip() for sandbox in (one, other)]
    assert len({*ids, str(Path(link).readlink())}) == 3


@pytest.mark.slow
def test_this_package_is_hidden(make_layer: MakeLayer, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = make_layer({"share/kept": "y"})
    shutil.copytree(Path(coding_gym.__file__).parent, prefix / "src2" / "coding_gym")
    monkeypatch.chdir(prefix / "src2")  # the test imports the package from it
    script = f"""
from dataclasses import replace
from coding_gym.sandbox import SandboxSpec, default_interpreter, get_backend
python = replace(default_interpreter(), prefix=Path({str(prefix)!r}))
with get_backend("namespace").open(SandboxSpec(python=python)) as sandbox:
    print(sandbox.run("cd {prefix}; ls -A src2/coding_gym; cat share/kept").output)
"""
    process = run_on("", script)
    assert (process.stdout, process.stderr) == ("y\n", "")


def test_listings_of_fresh_sandboxes_are_equal(make_layer: MakeLayer) -> None:
    layer = make_layer({"folder/file": "x"})
    spec = SandboxSpec(layers=(layer,), python=default_interpreter())
    # The link count of /proc is that of the host's processes, and sets the width of its column.
    command = "ls -la --full-time --ignore=proc / /etc /home /tmp /opt /sandbox/bin . folder"
    with BACKEND.open(spec) as sandbox:
        first = sandbox.run(command).output
    with BACKEND.open(spec) as sandbox:
        assert sandbox.run(command).output == first


def test_third_party_packages_of_the_host_are_hidden(sandbox: Sandbox) -> None:
    script = (
        "import os, site, sys\n"
        "for place in [*site.getsitepackages(), *(p for p in sys.path if 'packages' in p)]:\n"
        "    if os.path.isdir(place): print(os.listdir(place))\n"
    )
    sandbox.write_file("places.py", script.encode())
    for python in ("python", "/usr/bin/python3"):
        if sandbox.run(f"test -x $(command -v {python})").exit_code == 0:
            assert set(sandbox.run(f"{python} places.py").output.splitlines()) <= {"[]"}
    assert sandbox.run("python -c 'import gymnasium'").exit_code == 1


def test_a_build_has_the_network_but_no_other_rights() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: server.accept()[0].close(), daemon=True)
        thread.start()
        command = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo reached"
        with make_sandbox(network=True) as opened:
            assert opened.run(command).output == "reached\n"
            servers = Path("/etc/resolv.conf").read_text(encoding="utf-8")
            assert opened.run("cat /etc/resolv.conf").output == servers
            assert "no-network" not in opened.run("env").output
            rights = opened.run("id -u; grep CapEff /proc/self/status").output.split()
            assert rights == ["1000", "CapEff:", "0" * 16]
            assert "Read-only file system" in opened.run("echo > /etc/resolv.conf").output
        thread.join()


def test_builds_get_certificates_and_package_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("links", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "ca.pem").write_text("certificate", encoding="utf-8")
    (tmp_path / "tls" / "private").mkdir(parents=True)
    (tmp_path / "certs").symlink_to("home")
    tmp_path.chmod(0o755)
    config = tmp_path / "pip.conf"
    config.write_text(
        f"[global]\nindex-url = http://example.org/simple\n"
        f"[install]\nfind-links =\n    {tmp_path}/links\n    http://example.org/links\n"
        "constraint = c.txt\n",
        encoding="utf-8",
    )
    for name in ("PIP_FIND_LINKS", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # private, so never mounted
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "certs"))
    monkeypatch.setenv("CURL_CA_BUNDLE", str(tmp_path / "tls"))  # has keys, so never mounted
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
    for name in ("SECRET_TOKEN", "PIP_TARGET"):
        monkeypatch.setenv(name, "/opt/other")
    with make_sandbox(network=True) as sandbox:
        variables = dict(line.split("=", 1) for line in sandbox.run("env").output.splitlines())
        certificate = sandbox.run("cat $PIP_CERT").output
        assert not sandbox.run("echo x > $PIP_CERT").ok
        assert not sandbox.run(f"ls {tmp_path}").ok
    assert (
        variables.items()
        >= {
            "PIP_INDEX_URL": "http://example.org/simple",
            "PIP_FIND_LINKS": f"{tmp_path}/links http://example.org/links",
            "HTTPS_PROXY": "http://proxy.example.org:3128",
        }.items()
    )
    assert not {"SECRET_TOKEN", "PIP_TARGET", "PIP_CONSTRAINT", "PIP_CONFIG_FILE"} & {*variables}
    assert certificate == "certificate"


def test_builds_get_certificates_of_a_hidden_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "prefix" / "lib" / "python3.11" / "site-packages" / "certifi" / "cacert.pem"
    bundle.parent.mkdir(parents=True)
    bundle.write_text("certificate", encoding="utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    python = replace(default_interpreter(), prefix=tmp_path / "prefix")
    with make_sandbox(network=True, python=python) as sandbox:
        assert sandbox.run("cat $SSL_CERT_FILE").output == "certificate"
        assert sandbox.run(f"ls -A {bundle.parents[1]}").output == ""


def test_a_changed_or_replaced_layer_is_used(tmp_path: Path) -> None:
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
def test_many_sandboxes_have_separate_layers(tmp_path: Path) -> None:
    """The zygote mounts a limited number of folders at a time, and reuses their mount points."""
    stop_zygotes()
    for number in range(60):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "file").write_text(str(number), encoding="utf-8")
        os.chown(tmp_path / str(number) / "file", *BACKEND.owner())
        os.utime(tmp_path / str(number), (1000, 1000))

    def read_layer(number: int, **limits: int) -> str:
        layers = (tmp_path / str(number),)
        with make_sandbox(layers=layers, limits=SandboxLimits(**limits)) as sandbox:
            return sandbox.run("cat file").output

    with make_sandbox(layers=(tmp_path / "0",)) as first:
        for number in range(60):
            assert read_layer(number) == str(number)
        assert first.run("cat file; echo more > file; cat file").output == "0more\n"
    assert read_layer(0, num_processes=100) == "0"
    for number in (0, 30, *range(59, 40, -1), 1, 2, 0):
        assert read_layer(number) == str(number)
