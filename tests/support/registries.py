"""A container registry on 127.0.0.1."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from sandbox_fixtures import wait_until

_SETTINGS = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""
_MIRROR = """\
[[registry]]
prefix = "docker.io"
location = "{host}"
insecure = true
"""


@dataclass(frozen=True)
class Registry:
    """A running docker-registry that stores its files in a folder."""

    host: str
    folder: Path

    def push(self, name: str, layout: Path) -> None:
        """Uploads the image of an OCI layout under a name and tag."""
        target = f"docker://{self.host}/{name}"
        command = ["skopeo", "copy", "-q", "--dest-tls-verify=false", f"oci:{layout}", target]
        subprocess.run(command, check=True)

    def blob(self, digest: str) -> Path:
        """Returns the path of the file of a blob."""
        value = digest.partition(":")[2]
        return self.folder / f"docker/registry/v2/blobs/sha256/{value[:2]}/{value}/data"

    def replace_docker_hub(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Makes skopeo fetch images of Docker Hub from this registry."""
        path = self.folder / ".config/containers/registries.conf"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_MIRROR.format(host=self.host))
        monkeypatch.setenv("HOME", str(self.folder))


@contextmanager
def running_registry(folder: Path) -> Iterator[Registry]:
    program = shutil.which("docker-registry")
    if program is None or shutil.which("skopeo") is None:
        give_up = pytest.fail if "CI" in os.environ else pytest.skip
        give_up("run: apt-get install docker-registry skopeo")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "config.yml").write_text(_SETTINGS.format(folder=folder, port=port))
    command = [program, "serve", str(folder / "config.yml")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        registry = Registry(f"127.0.0.1:{port}", folder)

        def is_ready() -> bool:
            assert process.poll() is None
            with suppress(requests.ConnectionError):
                return requests.get(f"http://{registry.host}/v2/", timeout=5).ok
            return False

        wait_until(is_ready)
        yield registry
    finally:
        process.kill()
        process.wait()
