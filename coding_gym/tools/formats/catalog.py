"""The formats by name."""

from collections.abc import Mapping
from types import MappingProxyType

from coding_gym.arguments import unknown_name
from coding_gym.tools.formats import (
    apply_patch,
    bare,
    bash_block,
    hermes,
    llama3,
    mistral,
    nanoagent,
    openai,
    qwen3_coder,
    swe_agent,
)
from coding_gym.tools.formats.format import Format

AUTO = "auto"
STRICT = "[strict]"

_MODULES = (
    openai,
    bare,
    hermes,
    nanoagent,
    qwen3_coder,
    llama3,
    mistral,
    bash_block,
    swe_agent,
    apply_patch,
)
FORMATS: Mapping[str, Format] = MappingProxyType(
    {module.FORMAT.name: module.FORMAT for module in _MODULES}
)
TOOL_FORMATS = (AUTO, *FORMATS)


def split_format(tool_format: str) -> tuple[str, bool]:
    """Returns the name of a format, and whether ``[strict]`` stands behind it.

    Raises:
        UnknownNameError: There is no such format.
    """
    name = tool_format.removesuffix(STRICT) if isinstance(tool_format, str) else tool_format
    if name not in TOOL_FORMATS:
        raise unknown_name("tool format", tool_format, TOOL_FORMATS)
    return name, name != tool_format
