"""A registry of images on loopback, and one that wants a token before it answers."""

import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

_SETTINGS = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@dataclass(frozen=True)
class Registry:
    """Debian's docker-registry, with its files in a folder."""

    url: str
    folder: Path

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def push(self, name: str, blobs: Mapping[str, bytes], manifest: Mapping[str, Any]) -> None:
        """Uploads the blobs of an OCI layout, and its manifest under a name and tag."""
        repository, _, tag = name.rpartition(":")
        base = f"{self.url}/v2/{repository}"
        for digest, data in blobs.items():
            if digest == manifest["digest"]:
                continue
            started = requests.post(f"{base}/blobs/uploads/", timeout=30)
            place = started.headers["Location"]
            joint = "&" if "?" in place else "?"
            put = requests.put(f"{place}{joint}digest={digest}", data=data, timeout=30)
            put.raise_for_status()
        content = {"Content-Type": manifest["mediaType"]}
        document = blobs[manifest["digest"]]
        put = requests.put(f"{base}/manifests/{tag}", data=document, headers=content, timeout=30)
        put.raise_for_status()

    def blob(self, digest: str) -> Path:
        """Where it keeps a blob."""
        value = digest.partition(":")[2]
        return self.folder / f"docker/registry/v2/blobs/sha256/{value[:2]}/{value}/data"


@contextmanager
def running_registry(folder: Path) -> Iterator[Registry]:
    program = shutil.which("docker-registry")
    if program is None:
        give_up = pytest.fail if "CI" in os.environ else pytest.skip
        give_up("no docker-registry; run: apt-get install docker-registry")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "config.yml").write_text(_SETTINGS.format(folder=folder, port=port))
    command = [program, "serve", str(folder / "config.yml")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        registry = Registry(f"http://127.0.0.1:{port}", folder)
        end = time.monotonic() + 30
        while not _answers(registry.url):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        yield registry
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/v2/", timeout=5).ok
    except requests.ConnectionError:
        return False


@contextmanager
def guarded(
    registry: Registry, *, admits: bool = True, seen: list[str | None] | None = None
) -> Iterator[str]:
    """Yields the URL of a server that hands on what the registry says to those with its token.

    ``seen`` gets the passwords with which tokens are requested.
    """

    class Guard(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            own = f"http://{self.headers['Host']}"
            target = urlsplit(self.path)
            if target.path == "/token":
                if seen is not None:
                    seen.append(self.headers.get("Authorization"))
                scope = parse_qs(target.query)["scope"][0]
                self._answer(200, {}, json.dumps({"token": f"for {scope}"}).encode())
            elif not admits or not self.headers.get("Authorization", "").startswith("Bearer for "):
                repository = target.path.split("/v2/")[1].split("/manifests")[0].split("/blobs")[0]
                scope = f"repository:{repository}:pull"
                realm = f'Bearer realm="{own}/token",service="it",scope="{scope}"'
                self._answer(401, {"WWW-Authenticate": realm}, b"")
            else:
                names = ("Accept", "Range")
                passed = {key: self.headers[key] for key in names if key in self.headers}
                found = requests.get(f"{registry.url}{self.path}", headers=passed, timeout=30)
                kind = {"Content-Type": found.headers.get("Content-Type", "")}
                self._answer(found.status_code, kind, found.content)

        def _answer(self, code: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(code)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Guard) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
