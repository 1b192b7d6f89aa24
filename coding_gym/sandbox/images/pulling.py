"""Pulling images from their registry into OCI layout folders, without a daemon.

Specifications: https://github.com/opencontainers/distribution-spec (``spec.md``, "Pull"), and for
tokens https://distribution.github.io/distribution/spec/auth/token. Every blob is kept once and
hard-linked into the layouts of all images that have it; a pull that was cut off goes on where it
stopped, and nothing counts as there before its digest is right.
"""

import base64
import hashlib
import json
import re
import secrets
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox.folder_cache import key_lock
from coding_gym.sandbox.images.content import parse
from coding_gym.sandbox.images.manifest import checked_digest, is_ours, machine_architecture
from coding_gym.sandbox.images.store import image_folder

if TYPE_CHECKING:
    import requests

OnProgress = Callable[[int, int], None]
"""Called with the bytes that are there and those that the image has in all."""

_HUB, _HUB_HOST = "docker.io", "registry-1.docker.io"
_MANIFEST_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_HOST = re.compile(r"[\w-]+(\.[\w-]+)*(:\d+)?|\[[0-9a-fA-F:]+\](:\d+)?")
_REPOSITORY = re.compile(r"[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")
_TAG = re.compile(r"\w[\w.-]{0,127}|sha256:[0-9a-f]{64}")
_BLOBS = ".blobs"
_CHUNK_BYTES = 1 << 20
_MAX_MANIFEST_BYTES = 8 << 20
_TIMEOUTS_S = (20.0, 60.0)  # to connect, and between two pieces of an answer
_NUM_TRIES, _PAUSE_S = 5, 1.0
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


def pull_image(
    image: str,
    *,
    folder: Path | None = None,
    mirror: str = "",
    on_progress: OnProgress = lambda _done, _total: None,
) -> Path:
    """Downloads an image, and returns the OCI layout folder by which it is found from then on.

    What is there already, of this image or of another, is not downloaded again. Credentials are
    those of ``docker login``.

    Args:
        image: A name as of ``docker pull``: ``python:3.12``, ``ghcr.io/owner/name@sha256:…``.
        folder: Where images are kept; `image_folder` by default.
        mirror: URL of a registry to take it from instead of the one in its name, such as
            ``http://localhost:5000``.
        on_progress: Called as bytes come in.

    Raises:
        InvalidArgumentError: It is no name of an image, the registry has no such image or wants a
            login, or there is none for this kind of machine.
        SandboxError: The registry is out of reach, or sends something else than it promised.
    """
    source = _Source.of(image, mirror)
    folder = folder or image_folder()
    target = folder / source.name
    if (target / "index.json").exists():
        return target
    manifest, descriptor = source.manifest()
    try:
        blobs = [
            (checked_digest(one["digest"]), int(one["size"]))
            for one in (manifest["config"], *manifest["layers"])
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise SandboxError(f"the manifest of image {image!r} is malformed: {error!r}") from error
    store = folder / _BLOBS
    store.mkdir(parents=True, exist_ok=True)
    total, start = sum(size for _, size in blobs), 0
    for digest, size in blobs:
        source.blob(digest, size, store, partial(_shifted, on_progress, start, total))
        start += size
    _lay_out(target, store, [digest for digest, _ in blobs], descriptor, source)
    return target


def save_image(image: str, *, folder: Path | None = None) -> Path:
    """Copies an image out of the Docker engine that ``DOCKER_HOST`` names, as a tar.

    Args:
        image: A name that the engine knows.
        folder: Where images are kept; `image_folder` by default.

    Returns:
        The tar by which it is found from then on.

    Raises:
        InvalidArgumentError: The engine does not have it.
        SandboxError: There is no engine.
    """
    import docker

    name = _Source.of(image, "").name
    target = (folder or image_folder()) / f"{name}.tar"
    if target.exists():
        return target
    part = target.with_name(f"{target.name}.{secrets.token_hex(8)}")
    try:
        api = docker.from_env(timeout=600).api
        api.inspect_image(name)
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            for piece in api.get_image(name):
                file.write(piece)
        part.replace(target)
    except docker.errors.ImageNotFound as error:
        message = f"the Docker engine has no image {name!r}; run: docker pull {name}"
        raise InvalidArgumentError(message) from error
    except docker.errors.DockerException as error:
        raise SandboxError(f"cannot take image {name!r} from Docker: {error}") from error
    finally:
        part.unlink(missing_ok=True)
    return target


@dataclass(slots=True)
class _Source:
    """One repository of a registry.

    Attributes:
        image: The image's name as it was given.
        name: The same with its tag.
        tag: Its tag or digest.
        host: The registry in the name.
        mirror: What stands in for it; "" for nothing.
        url: Where its API answers about the repository.
    """

    image: str
    name: str
    tag: str
    host: str
    mirror: str
    url: str
    _authorization: str = ""
    _session: "requests.Session | None" = field(default=None, repr=False)

    @classmethod
    def of(cls, image: str, mirror: str) -> "_Source":
        """Reads a name as Docker does."""
        from docker.auth import resolve_repository_name
        from docker.errors import DockerException
        from docker.utils import parse_repository_tag

        rest, tag = parse_repository_tag(image)
        tag = tag or "latest"
        try:
            host, repository = resolve_repository_name(rest)
        except DockerException as error:
            raise InvalidArgumentError(f"{image!r} is no name of an image: {error}") from error
        forms = ((_HOST, host), (_REPOSITORY, repository), (_TAG, tag))
        if not all(form.fullmatch(part) for form, part in forms):
            raise InvalidArgumentError(
                f"{image!r} is no name of an image; one is [HOST/]NAME[:TAG] in lower case"
            )
        if host == _HUB and "/" not in repository:
            repository = f"library/{repository}"
        is_local = host.partition(":")[0] in ("localhost", "127.0.0.1")
        scheme = "http" if is_local else "https"
        base = mirror.rstrip("/") or f"{scheme}://{_HUB_HOST if host == _HUB else host}"
        if not base.startswith(("http://", "https://")):
            raise InvalidArgumentError(f"mirror must be an http or https URL, got {mirror!r}")
        joint = "@" if ":" in tag else ":"
        return cls(image, f"{rest}{joint}{tag}", tag, host, mirror, f"{base}/v2/{repository}")

    def manifest(self) -> tuple[Any, dict[str, Any]]:
        """Returns the manifest for this machine, and the descriptor of it with its bytes."""
        data, kind = self._document(self.tag)
        document = parse(data, "manifest")
        if "manifests" in document:
            ours = [one for one in document["manifests"] if is_ours(one.get("platform") or {})]
            if not ours:
                raise InvalidArgumentError(
                    f"image {self.image!r} has no variant for linux/{machine_architecture()}"
                )
            digest = checked_digest(ours[0]["digest"])
            data, kind = self._document(digest)
            document = parse(data, "manifest")
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        return document, {"mediaType": kind, "digest": digest, "size": len(data), "data": data}

    def _document(self, reference: str) -> tuple[bytes, str]:
        with self._get(f"manifests/{reference}", {"Accept": ", ".join(_MANIFEST_TYPES)}) as answer:
            data = answer.raw.read(_MAX_MANIFEST_BYTES + 1, decode_content=True)
            kind = answer.headers.get("Content-Type", "").partition(";")[0]
        if len(data) > _MAX_MANIFEST_BYTES:
            raise SandboxError(f"image {self.image!r}: its manifest is larger than 8 MiB")
        if reference.startswith("sha256:") and not _is(data, reference):
            raise SandboxError(f"image {self.image!r}: its manifest has another digest than named")
        return data, kind

    def blob(self, digest: str, size: int, store: Path, report: Callable[[int], None]) -> None:
        """Downloads a blob, unless it is there; ``report`` is called with its bytes so far."""
        name = digest.replace(":", "-")
        path, part = store / name, store / f"{name}.part"
        with key_lock(store, name):
            for _ in range(_NUM_TRIES):
                if path.exists():
                    break
                problem = self._download(digest, size, part, report)
                if not problem:
                    part.replace(path)
                else:
                    time.sleep(_PAUSE_S)
            else:
                raise SandboxError(
                    f"image {self.image!r}: {problem}; call again, it goes on where it stopped"
                )
        report(size)

    def _download(self, digest: str, size: int, part: Path, report: Callable[[int], None]) -> str:
        """Goes on with a blob; returns what kept it from its end, "" where nothing did."""
        import requests

        there = part.stat().st_size if part.exists() else 0
        try:
            if there < size:
                there = self._append(digest, size, part, there, report)
        except requests.RequestException as error:
            return f"layer {digest} came to {there} of {size} bytes: {error}"
        if there < size:
            return f"layer {digest} came to {there} of {size} bytes"
        with part.open("rb") as file:
            kind = digest.partition(":")[0]
            found = f"{kind}:{hashlib.file_digest(file, kind).hexdigest()}"
        if there > size or found != digest:
            part.unlink()
            raise SandboxError(
                f"image {self.image!r}: layer {digest} came with digest {found} and {there} bytes "
                f"(wanted {size}); the registry, or a proxy on the way, is broken"
            )
        return ""

    def _append(
        self, digest: str, size: int, part: Path, there: int, report: Callable[[int], None]
    ) -> int:
        """Writes what comes behind what is there; returns how much there is then."""
        import requests

        with self._get(f"blobs/{digest}", {"Range": f"bytes={there}-"} if there else {}) as answer:
            there = there if answer.status_code == requests.codes.partial_content else 0
            with part.open("ab" if there else "wb") as file:
                for piece in answer.iter_content(_CHUNK_BYTES):
                    there += len(piece)
                    if there > size:
                        break
                    file.write(piece)
                    file.flush()
                    report(there)
        return there

    def _get(self, path: str, headers: dict[str, str]) -> "requests.Response":
        """Asks the registry, logging in where it wants that."""
        import requests

        self._session = self._session or requests.Session()
        url = f"{self.url}/{path}"
        for is_second in (False, True):
            sent = {"Accept-Encoding": "identity", **headers}
            if self._authorization:
                sent["Authorization"] = self._authorization
            try:
                answer = self._session.get(url, headers=sent, stream=True, timeout=_TIMEOUTS_S)
            except requests.RequestException as error:
                if path.startswith("blobs"):
                    raise
                raise SandboxError(
                    f"image {self.image!r}: cannot reach {url}: {error}; where the registry is out "
                    "of reach, give a mirror (--mirror URL), or put what `docker save` writes at "
                    f"{image_folder() / self.name}.tar"
                ) from error
            if answer.status_code != requests.codes.unauthorized or is_second:
                break
            answer.close()
            self._log_in(answer.headers.get("WWW-Authenticate", ""))
        self._check(answer)
        return answer

    def _check(self, answer: "requests.Response") -> None:
        import requests

        code = answer.status_code
        if answer.ok:
            return
        answer.close()
        if code in (
            requests.codes.unauthorized,
            requests.codes.forbidden,
            requests.codes.not_found,
        ):
            raise InvalidArgumentError(
                f"{self.host} has no image {self.name!r} for you (HTTP {code}); look at the name, "
                f"or log in: docker login {self.host}"
            )
        if code == requests.codes.too_many_requests:
            wait = answer.headers.get("Retry-After", "some time")
            raise SandboxError(
                f"{self.host} allows no more downloads for now (HTTP 429, try again after {wait}); "
                f"docker login {self.host} raises its limit"
            )
        raise SandboxError(f"image {self.image!r}: {self.host} answers HTTP {code}")

    def _log_in(self, challenge: str) -> None:
        """Gets what the registry's challenge asks for: a token, or name and password."""
        import requests
        from docker.auth import load_config
        from docker.errors import DockerException

        # Those of a registry are not for its mirrors.
        place = self.host if self.mirror == "" else urlsplit(self.mirror).netloc
        try:
            known = load_config().resolve_authconfig(place) or {}
        except DockerException:  # a helper that keeps passwords is gone
            known = {}
        name, password = known.get("username"), known.get("password")
        login = requests.auth.HTTPBasicAuth(name, password) if name and password else None
        kind = challenge.partition(" ")[0].lower()
        asked = dict(_CHALLENGE.findall(challenge))
        if kind == "bearer" and "realm" in asked:
            wanted = {key: asked[key] for key in ("service", "scope") if key in asked}
            is_safe = asked["realm"].startswith("https://") or self.url.startswith("http://")
            try:
                answer = requests.get(
                    asked["realm"],
                    params=wanted,
                    auth=login if is_safe else None,
                    timeout=_TIMEOUTS_S,
                )
            except requests.RequestException as error:
                raise SandboxError(
                    f"image {self.image!r}: cannot get a token from {asked['realm']}: {error}"
                ) from error
            self._check(answer)
            found = parse(answer.content, "token")
            self._authorization = f"Bearer {found.get('token') or found.get('access_token')}"
        elif login is not None:
            pair = base64.b64encode(f"{name}:{password}".encode()).decode("ascii")
            self._authorization = f"Basic {pair}"


def _lay_out(
    target: Path, store: Path, digests: list[str], descriptor: dict[str, Any], source: _Source
) -> None:
    """Makes the layout folder at once: it is there whole, or not at all."""
    half = store / f"layout-{secrets.token_hex(8)}"
    blobs = half / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    try:
        for digest in dict.fromkeys(digests):
            kind, _, value = digest.partition(":")
            (blobs.parent / kind).mkdir(exist_ok=True)
            (blobs.parent / kind / value).hardlink_to(store / digest.replace(":", "-"))
        data = descriptor.pop("data")
        (blobs / descriptor["digest"].partition(":")[2]).write_bytes(data)
        named = {"org.opencontainers.image.ref.name": source.name}
        index = {"schemaVersion": 2, "manifests": [descriptor | {"annotations": named}]}
        (half / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        (half / "index.json").write_text(json.dumps(index))
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            half.rename(target)
        except OSError:
            if not (target / "index.json").exists():  # else another process was faster
                raise
    finally:
        shutil.rmtree(half, ignore_errors=True)


def _shifted(on_progress: OnProgress, start: int, total: int, done: int) -> None:
    on_progress(start + done, total)


def _is(data: bytes, digest: str) -> bool:
    return f"sha256:{hashlib.sha256(data).hexdigest()}" == digest
