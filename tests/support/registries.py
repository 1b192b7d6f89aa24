"""A registry of images on loopback, and one that stops in the middle of a blob."""

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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
    """Debian's docker-registry, with its files in a folder."""

    host: str
    folder: Path

    def push(self, name: str, layout: Path) -> None:
        """Uploads the image of an OCI layout under a name and tag."""
        target = f"docker://{self.host}/{name}"
        command = ["skopeo", "copy", "-q", "--dest-tls-verify=false", f"oci:{layout}", target]
        subprocess.run(command, check=True)

    def blob(self, digest: str) -> Path:
        """Where it keeps a blob."""
        value = digest.partition(":")[2]
        return self.folder / f"docker/registry/v2/blobs/sha256/{value[:2]}/{value}/data"

    def replace_docker_hub(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Has skopeo take images of Docker Hub from this registry."""
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


@dataclass
class Stalled:
    """A registry that sends half of a blob once, and nothing more of that request."""

    host: str
    half_is_sent: threading.Event
    paths: list[str]


@contextmanager
def stalling(registry: Registry, blob: str) -> Iterator[Stalled]:
    """Yields a proxy of a registry that sends half of a blob the first time."""
    half, over = threading.Event(), threading.Event()
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            accept = {"Accept": ", ".join(self.headers.get_all("Accept") or ["*/*"])}
            reply = requests.get(f"http://{registry.host}{self.path}", headers=accept, timeout=30)
            self.send_response(reply.status_code)
            for key in ("Content-Type", "Content-Length", "Docker-Content-Digest"):
                if key in reply.headers:
                    self.send_header(key, reply.headers[key])
            self.end_headers()
            if not self.path.endswith(blob) or half.is_set():
                self.wfile.write(reply.content)
                return
            self.wfile.write(reply.content[: len(reply.content) // 2])
            half.set()
            over.wait(60)

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Stalled(f"127.0.0.1:{server.server_address[1]}", half, paths)
        over.set()
        server.shutdown()
