"""Finds network settings of this machine: name servers, proxies, certificates, package indexes.

Only the sandboxes that build environments have the host's network and these settings. These
sandboxes run commands of the task's author, not of a policy.
"""

import configparser
import os
import sys
from contextlib import suppress
from pathlib import Path

from coding_gym.host.toolchains import home_folder, is_private

_HOST_NAME_FILES = (Path("/etc/hosts"), Path("/etc/resolv.conf"))
_CERTIFICATES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("GIT_SSL_CAINFO", "PIP_CERT"),
)
_CERTIFICATE_FILES = "/opt/certificates"  # in a sandbox
# pip's options for the sources of packages; tasks determine the packages and their folder.
_PIP_OPTIONS = (
    *("index-url", "pypi-url", "extra-index-url", "find-links", "no-index", "trusted-host"),
    *("proxy", "cert", "timeout", "default-timeout", "retries"),
)


class _PipConfig(configparser.RawConfigParser):
    """Settings of pip, which reads ``index_url`` as ``index-url``."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr.lower().replace("_", "-")


def network_variables() -> dict[str, str]:
    """Returns the host's variables that name proxies and certificates."""
    return {
        name: value
        for name, value in os.environ.items()
        if value and (name.lower().endswith("_proxy") or name in _CERTIFICATES)
    }


def settings() -> tuple[dict[str, str], dict[str, Path]]:
    """Returns the host's network settings as they are now.

    Returns:
        Environment variables, and mounts (files and folders by target): the files of host names,
        and the certificates that the variables name, except folders with private files or keys.
    """
    env = network_variables() | _pip_variables()
    mounts = {str(path): path for path in _HOST_NAME_FILES if path.is_file()}
    for name in _CERTIFICATES:
        path = Path(env.get(name, ""))
        if path.is_absolute() and path.exists() and not _has_secrets(path.resolve()):
            # A file can be in a folder that sandboxes hide, such as certifi's.
            target = f"{_CERTIFICATE_FILES}/{name}" if path.is_file() else str(path)
            mounts[target], env[name] = path, target
    return env, mounts


def _has_secrets(path: Path) -> bool:
    """Returns whether a folder of certificates has private files or keys, as ``/etc/ssl`` has."""
    return is_private(path) or any((*path.glob("private"), *path.glob("*/private")))


def _pip_variables() -> dict[str, str]:
    """Returns pip's options for the sources of packages, as environment variables for pip."""
    config, home = _PipConfig(strict=False), home_folder()
    user = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    named_file = os.environ.get("PIP_CONFIG_FILE", "")
    # pip reads the named file in place of the user's files.
    user_folders = () if named_file and Path(named_file).exists() else (home / ".pip", user / "pip")
    folders = (Path("/etc/xdg/pip"), Path("/etc"), *user_folders, Path(sys.prefix))
    files = [folder / "pip.conf" for folder in folders]
    for file in () if named_file == os.devnull else (*files, Path(named_file)):
        with suppress(configparser.Error, UnicodeDecodeError):  # pip itself reports the error
            config.read(file, encoding="utf-8")
    variables = {}
    for option in _PIP_OPTIONS:
        name = f"PIP_{option.upper().replace('-', '_')}"
        values = [config.get(section, option, fallback="") for section in ("install", "global")]
        if value := next(filter(None, (os.environ.get(name), *values)), ""):
            variables[name] = " ".join(value.split())
    return variables
