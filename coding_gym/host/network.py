"""Network settings of this machine: name servers, proxies, certificates, pip's configuration.

A sandbox with the host's network needs them. Only builds of environments have it, and they run
commands of the task's author, not of a policy.
"""

import configparser
import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

_COPIED = ("hosts", "resolv.conf")
_CERTIFICATE_VARIABLES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
)
_PIP_INDEX_OPTIONS = ("index-url", "extra-index-url", "find-links")
# What is installed and where to is for the task to say, and the same on every machine.
_PIP_LEFT_OUT = frozenset(
    ("constraint", "build-constraint", "requirement", "target", "prefix", "root", "user")
)
# Already part of every sandbox's root.
_VISIBLE_FOLDERS = (Path("/usr"), Path("/etc/ssl"), Path("/etc/pki"), Path("/etc/ca-certificates"))


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Additions to a sandbox.

    Attributes:
        files: Texts by path inside; each replaces a file of the root.
        env: Environment variables.
        paths: Host folders and files that those settings name, to be shown where they are.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()


NONE = NetworkSettings()


def network_variables() -> dict[str, str]:
    """Returns the host's variables that name proxies and certificates."""
    return {
        name: value
        for name, value in os.environ.items()
        if value and (name.lower().endswith("_proxy") or name in _CERTIFICATE_VARIABLES)
    }


def settings() -> NetworkSettings:
    """Returns the host's network settings as they are now."""
    env = network_variables()
    pip_names = (name for name in os.environ if name.startswith("PIP_"))
    env |= {name: os.environ[name] for name in pip_names if not _is_left_out(name[4:])}
    env.pop("PIP_CONFIG_FILE", None)
    pip = _pip_configuration()
    text = io.StringIO()
    pip.write(text)
    files = {f"/etc/{name}": _read(Path("/etc") / name) for name in _COPIED}
    certificates = [Path(env[name]) for name in _CERTIFICATE_VARIABLES if name in env]
    paths = tuple(
        path
        for path in dict.fromkeys((*_package_folders(pip, env), *certificates))
        if path.is_absolute()
        and path.exists()
        and not any(path.is_relative_to(folder) for folder in _VISIBLE_FOLDERS)
    )
    return NetworkSettings(files | {"/etc/pip.conf": text.getvalue()}, env, paths)


def _pip_configuration() -> configparser.RawConfigParser:
    """Returns pip's configuration files of this host, merged in pip's own order."""
    home = Path.home()
    user = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    merged = configparser.RawConfigParser()
    for place in (
        "/etc/xdg/pip/pip.conf",
        "/etc/pip.conf",
        home / ".pip" / "pip.conf",
        user / "pip" / "pip.conf",
        Path(sys.prefix) / "pip.conf",
        os.environ.get("PIP_CONFIG_FILE", ""),
    ):
        with suppress(configparser.Error):  # pip itself will say so where it matters
            merged.read(place, encoding="utf-8")
    for section in (merged.default_section, *merged.sections()):
        for option in filter(_is_left_out, [*merged[section]]):
            merged.remove_option(section, option)
    return merged


def _is_left_out(option: str) -> bool:
    return option.lower().replace("_", "-").removeprefix("--") in _PIP_LEFT_OUT


def _package_folders(pip: configparser.RawConfigParser, env: Mapping[str, str]) -> Iterator[Path]:
    """Gives the local folders that pip's settings name as indexes or links."""
    for option in _PIP_INDEX_OPTIONS:
        values = [env.get("PIP_" + option.upper().replace("-", "_"), "")]
        values += [pip.get(section, option, fallback="") for section in pip.sections()]
        for word in " ".join(values).split():
            parts = urlsplit(word)
            if parts.scheme in {"", "file"}:
                folder = Path(unquote(parts.path)).expanduser()
                # A simple index links to files beside itself.
                yield folder.parent if folder.name == "simple" else folder


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
