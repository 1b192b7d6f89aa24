"""What a sandbox with the host's network needs of the host: name servers, proxies, pip's settings.

Only builds of environments have the network. They are the task author's commands, not a policy's.
"""

import configparser
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from coding_gym.sandbox.spec import Mount

_COPIED = ("hosts", "resolv.conf")
_CERTIFICATE_VARIABLES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
)
_PIP_PLACES = ("index-url", "extra-index-url", "find-links")
# Already part of every sandbox's root.
_SHOWN = (Path("/usr"), Path("/etc/ssl"), Path("/etc/pki"), Path("/etc/ca-certificates"))


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Additions to a sandbox.

    Attributes:
        files: Texts by path inside; each replaces a file of the root.
        env: Environment variables.
        mounts: Host folders and files that those settings name.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()


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
    env = network_variables() | _pip_variables()
    pip = _pip_configuration()
    files = {f"/etc/{name}": _read(Path("/etc") / name) for name in _COPIED}
    files["/etc/pip.conf"] = _as_text(pip)
    places = dict.fromkeys((*_package_folders(pip, env), *_certificates(env)))
    mounts = tuple(
        Mount(source=place, target=str(place))
        for place in places
        if place.exists() and not any(place.is_relative_to(folder) for folder in _SHOWN)
    )
    return NetworkSettings(files=files, env=env, mounts=mounts)


def _pip_variables() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("PIP_") and name != "PIP_CONFIG_FILE"
    }


def _pip_configuration() -> configparser.RawConfigParser:
    """Returns pip's configuration files of this host, merged in pip's own order."""
    home = Path.home()
    user = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    named = os.environ.get("PIP_CONFIG_FILE")
    places = [
        Path("/etc/xdg/pip/pip.conf"),
        Path("/etc/pip.conf"),
        home / ".pip" / "pip.conf",
        user / "pip" / "pip.conf",
        Path(sys.prefix) / "pip.conf",
        *([Path(named)] if named else []),
    ]
    merged = configparser.RawConfigParser()
    for place in places:
        try:
            merged.read(place, encoding="utf-8")
        except configparser.Error:
            continue  # pip itself will say so where it matters
    return merged


def _package_folders(pip: configparser.RawConfigParser, env: Mapping[str, str]) -> Iterator[Path]:
    """Gives the local folders that pip's settings name as indexes or links."""
    for option in _PIP_PLACES:
        values = [env.get("PIP_" + option.upper().replace("-", "_"), "")]
        values += [pip.get(section, option, fallback="") for section in pip.sections()]
        for word in " ".join(values).split():
            parts = urlsplit(word)
            if parts.scheme not in {"", "file"}:
                continue
            folder = Path(unquote(parts.path)).expanduser()
            if folder.is_absolute():
                # A simple index links to files beside itself.
                yield folder.parent if folder.name == "simple" else folder


def _certificates(env: Mapping[str, str]) -> Iterator[Path]:
    for name in _CERTIFICATE_VARIABLES:
        if name in env and Path(env[name]).is_absolute():
            yield Path(env[name])


def _as_text(pip: configparser.RawConfigParser) -> str:
    lines = []
    for section in pip.sections():
        lines.append(f"[{section}]")
        for option, value in pip.items(section):
            lines.append(f"{option} = " + value.replace("\n", "\n    "))
    return "\n".join(lines) + "\n"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
