"""Creates tars, and OCI images that contain programs of this machine."""

import gzip
import hashlib
import io
import json
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from sandbox_fixtures import write_files

PROGRAMS = ("bash", "cat", "chmod", "env", "id", "ls", "mkdir", "mv", "rm", "stat", "touch")
GIT_PROGRAMS = ("git", "find", "sort", "comm", "xargs", "sed", "base64", "cp", "tr", "tar")
DATE = 1_000_000_000
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "")
# The folder of packages below Python's library folder; Debian uses another name.
PACKAGES = "dist-packages" if "deb_system" in sysconfig.get_scheme_names() else "site-packages"
_LIBRARY = re.compile(r"(/\S+) \(0x")
_SKIPPED_FOLDERS = {
    *("test", "tests", "idlelib", "site-packages", "dist-packages", "__pycache__", "ensurepip"),
    *("turtledemo", "tkinter", "lib2to3", "distutils", "pydoc_data", "sqlite3", "curses"),
}
# Compiled modules that no test in an image imports; some need large libraries.
_SKIPPED_MODULES = re.compile(
    r"(_tkinter|_sqlite3|_curses|nis|readline|_dbm|_gdbm|_ssl|_codecs_|_test|_ctypes_test|xx)"
)

Entry = tuple[tarfile.TarInfo, bytes]
Layers = Sequence[bytes]
MakeImage = Callable[..., str]


def entry(
    name: str, data: bytes | str = b"", *, kind: bytes = tarfile.REGTYPE, **facts: Any
) -> Entry:
    """Returns a tar member; ``facts`` are attributes of its header."""
    content = data.encode() if isinstance(data, str) else data
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.mtime = kind, 0o755 if kind == tarfile.DIRTYPE else 0o644, DATE
    info.size = len(content)
    for key, value in facts.items():
        setattr(info, key, value)
    return info, content


def folder(name: str, **facts: Any) -> Entry:
    return entry(name, kind=tarfile.DIRTYPE, **facts)


def symlink(name: str, target: str) -> Entry:
    return entry(name, kind=tarfile.SYMTYPE, linkname=target)


def tar_of(entries: Iterable[Entry]) -> bytes:
    """Returns a tar with these members; nothing is checked."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return data.getvalue()


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def oci_blobs(
    layers: Layers, *, is_plain: bool = True, **facts: Any
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Returns the blobs of an image by digest, and the descriptor of its manifest.

    Plain layers are compressed. ``facts`` become the ``config`` part of the configuration.
    """
    blobs = {}

    def add(data: bytes, kind: str) -> dict[str, Any]:
        blobs[digest(data)] = data
        return {"mediaType": kind, "digest": digest(data), "size": len(data)}

    config = {
        "architecture": ARCHITECTURE,
        "os": "linux",
        "config": facts,
        "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]},
    }
    base = "application/vnd.oci.image"
    packed = [gzip.compress(layer, 1, mtime=0) if is_plain else layer for layer in layers]
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{base}.manifest.v1+json",
        "config": add(json.dumps(config).encode(), f"{base}.config.v1+json"),
        "layers": [add(data, f"{base}.layer.v1.tar+gzip") for data in packed],
    }
    return blobs, add(json.dumps(manifest).encode(), f"{base}.manifest.v1+json")


def oci_files(blobs: Mapping[str, bytes], *manifests: Mapping[str, Any]) -> dict[str, bytes]:
    """Returns the files of an OCI layout by name."""
    index = {"schemaVersion": 2, "manifests": list(manifests)}
    files = {
        "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
        "index.json": json.dumps(index).encode(),
    }
    return files | {f"blobs/{name.replace(':', '/')}": data for name, data in blobs.items()}


def oci_layout(target: Path, layers: Layers = (), *, compressed: Layers = (), **facts: Any) -> Path:
    """Writes an OCI layout folder of plain or of already compressed layers; returns the folder."""
    blobs, manifest = oci_blobs(layers or compressed, is_plain=bool(layers), **facts)
    return write_files(target, oci_files(blobs, manifest))


def programs(*names: str) -> list[Entry]:
    """Returns tar members: programs of this machine in ``/bin``, with their libraries."""
    return with_libraries({f"bin/{name}": Path(str(shutil.which(name))) for name in names})


def with_libraries(files: Mapping[str, Path]) -> list[Entry]:
    """Returns tar members: programs or compiled modules by name, with their libraries."""
    shared = {path.lstrip("/"): Path(path) for path in libraries(tuple(files.values()))}
    return [
        entry(name, path.read_bytes(), mode=0o755) for name, path in {**shared, **files}.items()
    ]


@cache
def libraries(files: tuple[Path, ...]) -> tuple[str, ...]:
    """Returns the paths of the shared libraries of programs or compiled modules."""
    listing = subprocess.run(
        [str(shutil.which("ldd")), *map(str, files)], capture_output=True, text=True, check=False
    ).stdout
    return tuple(dict.fromkeys(_LIBRARY.findall(listing)))


def system(*more: str) -> list[Entry]:
    """Returns the tar members of a small system: folders, users and programs."""
    return [
        folder("etc"),
        entry(
            "etc/passwd",
            "root:x:0:0::/root:/bin/bash\nworker:x:1234:1235::/home/worker:/bin/bash\n",
        ),
        entry("etc/group", "root:x:0:\nworker:x:1235:\nothers:x:77:\n"),
        folder("root", mode=0o700),
        folder("tmp", mode=0o1777),
        *programs(*PROGRAMS, *more),
    ]


def python_with_pytest() -> list[Entry]:
    """Returns tar members: the Python that runs the tests, reduced, and pytest."""
    prefix = Path(sys.base_prefix)
    library = Path(sysconfig.get_path("stdlib", vars={"installed_base": str(prefix)}))
    binary = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    files = {"opt/python/bin/python3": binary}
    target = f"opt/python/{library.relative_to(prefix)}"
    for path in library.rglob("*"):
        parts = path.relative_to(library).parts
        is_wanted = not _SKIPPED_FOLDERS & set(parts) and path.suffix not in {".a", ".o"}
        if path.suffix == ".so" and _SKIPPED_MODULES.match(path.name):
            continue
        if is_wanted and path.is_file():
            files["/".join((target, *parts))] = path
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        for file in distribution(name).files or ():
            if not {"..", "__pycache__"} & set(file.parts):
                files[f"{target}/{PACKAGES}/{file}"] = Path(str(file.locate()))
    plain = {n: p for n, p in files.items() if p.suffix != ".so" and p != binary}
    binaries = {n: p for n, p in files.items() if n not in plain}
    members = [entry(name, path.read_bytes()) for name, path in plain.items()]
    return [*members, *with_libraries(binaries)]
