"""Source distributions from the package index, fetched inside a sandbox."""

import io
import lzma
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from coding_gym.errors import InvalidArgumentError, TemplateError, last_line
from coding_gym.sandbox import default_interpreter, open_sandbox
from coding_gym.sandbox.spec import SandboxSpec
from coding_gym.synthesis.project import keep_tree

_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)")
_TIMEOUT_S = 900.0
_MAX_FILES = 20_000
_MAX_BYTES = 256 << 20
# What the readers of archives raise where one is damaged, encrypted, or of a kind they do not know.
_UNREADABLE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(EOFError, OSError, RuntimeError, ValueError),
)
# What pip says where it gave up on reaching an index, before it says that there is no such version.
_NO_NETWORK = re.compile(
    r"Retry\(total=0\b.*after connection broken|Max retries exceeded|Failed to establish a new"
    r"|Temporary failure in name resolution|Network is unreachable|No route to host"
)
# pip looks at a source distribution's metadata, which runs code of its author: never on the host.
_DOWNLOAD = """\
set -e
cd /tmp
{python} -m venv --symlinks venv
venv/bin/pip download --quiet --no-deps --no-binary {name} --dest sdist '{name}=={version}'
cd sdist && mv -- * /tmp/sdist.archive
"""


def download(requirement: str, trees: Path, *, sandbox: str = "auto") -> tuple[str, str, Path]:
    """Fetches the source distribution of one version and returns name, version and its folder.

    Args:
        requirement: Such as ``cachetools==8.0.0``.
        trees: Where the folder will be.
        sandbox: Name of the sandbox backend to fetch in.

    Raises:
        InvalidArgumentError: It is not of that form.
        TemplateError: It cannot be fetched, or is no archive that can be used.
        SandboxError: No sandbox could be opened.
    """
    match = _REQUIREMENT.fullmatch(requirement.strip())
    if match is None:
        raise InvalidArgumentError(f"pypi must be NAME==VERSION, got {requirement!r}")
    name, version = match.groups()
    data = _fetch(name, version, sandbox)
    with tempfile.TemporaryDirectory() as scratch:
        unpack(data, Path(scratch, "sdist"))
        (top,) = Path(scratch, "sdist").iterdir()
        return name, version, keep_tree(top, trees, f"{name}-{version}")


def _fetch(name: str, version: str, backend: str) -> bytes:
    python = default_interpreter()
    spec = SandboxSpec(python=python, network=True)
    with open_sandbox(spec, backend=backend) as sandbox:
        command = _DOWNLOAD.format(python=python.executable, name=name, version=version)
        result = sandbox.run(command, timeout_s=_TIMEOUT_S)
        if not result.ok:
            raise _failure(name, version, result.output)
        return sandbox.read_file("/tmp/sdist.archive")  # noqa: S108 - inside the sandbox


def _failure(name: str, version: str, output: str) -> TemplateError:
    """Returns the error that tells an index out of reach from a version that it does not have."""
    if _NO_NETWORK.search(output):
        why = "the network, or the package index, is out of reach; try again where there is one, or"
    else:
        why = f"{last_line(output)}; see that name and version are right, or"
    return TemplateError(
        f"cannot fetch the source distribution of {name}=={version}: {why} download and unpack it "
        "yourself, and give its folder as --repo"
    )


def unpack(data: bytes, into: Path) -> None:
    """Writes the plain files of a ``.tar.gz`` or ``.zip``, and nothing else that it may hold.

    Raises:
        TemplateError: It is no such archive, is too large, leads out of its folder, or has not
            exactly one folder at its top.
    """
    size = 0
    try:
        for number, (name, mode, content) in enumerate(_members(data)):
            path = PurePosixPath(name)
            size += len(content)
            if path.is_absolute() or ".." in path.parts or len(path.parts) < 2:
                raise TemplateError(f"the source distribution holds {name!r}, which has no place")
            if number >= _MAX_FILES or size > _MAX_BYTES:
                raise TemplateError("the source distribution is too large")
            target = into / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(0o755 if mode & 0o100 else 0o644)
    except TemplateError:
        raise
    except _UNREADABLE as error:
        raise TemplateError(
            "the source distribution cannot be unpacked: "
            f"{last_line(str(error), type(error).__name__)}"
        ) from error
    tops = list(into.iterdir()) if into.is_dir() else []
    if len(tops) != 1:
        raise TemplateError(f"the source distribution has {len(tops)} folders at its top, not one")
    shutil.rmtree(tops[0] / ".git", ignore_errors=True)


def _members(data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Yields name, mode and content of every plain file."""
    if data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                mode = info.external_attr >> 16
                if not info.is_dir() and not stat.S_ISLNK(mode) and info.file_size <= _MAX_BYTES:
                    yield info.filename, mode, archive.read(info)
        return
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            if member.isfile() and member.size <= _MAX_BYTES:
                content = tar.extractfile(member)
                yield member.name, member.mode, b"" if content is None else content.read()
