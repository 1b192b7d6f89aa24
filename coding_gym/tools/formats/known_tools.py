"""What formats need to know of the tools: their names, their arguments' types, what runs a text."""

from collections.abc import Mapping
from dataclasses import dataclass

from coding_gym.tools.schemas import Schema
from coding_gym.tools.shells import COMMANDS, SHELLS

# A tool that takes one of these, or of `COMMANDS`, and requires nothing else takes a whole text.
_PATCHES = ("patch", "diff", "input")
# Which tool is meant where several take a patch.
_PATCHERS = ("apply_patch",)


@dataclass(frozen=True, slots=True)
class KnownTools:
    """The tools that a policy has.

    Attributes:
        schemas: OpenAI function schemas.
    """

    schemas: tuple[Schema, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, in the order of the schemas."""
        return tuple(schema["function"]["name"] for schema in self.schemas)

    @property
    def nullary(self) -> tuple[str, ...]:
        """The names of tools that need no argument."""
        return tuple(name for name in self.names if not self._required(name))

    def properties(self, tool: str) -> Mapping[str, Schema]:
        """Returns the schemas of a tool's arguments by name; empty for unknown tools."""
        properties: Mapping[str, Schema] = self._parameters(tool).get("properties", {})
        return properties

    def shell(self) -> tuple[str, str] | None:
        """Returns the tool that runs a shell command, and its argument; None where none does."""
        return self._taker(COMMANDS, SHELLS)

    def patcher(self) -> tuple[str, str] | None:
        """Returns the tool that applies a patch, and its argument; None where none does."""
        return self._taker(_PATCHES, _PATCHERS)

    def _taker(
        self, arguments: tuple[str, ...], preferred: tuple[str, ...]
    ) -> tuple[str, str] | None:
        found = {}
        for name in self.names:
            required = self._required(name)
            if len(required) == 1 and required[0] in arguments:
                found[name] = required[0]
        ordered = (*(name for name in preferred if name in found), *found)
        return (ordered[0], found[ordered[0]]) if ordered else None

    def _required(self, tool: str) -> tuple[str, ...]:
        return tuple(self._parameters(tool).get("required", ()))

    def _parameters(self, tool: str) -> Schema:
        for schema in self.schemas:
            if schema["function"]["name"] == tool:
                parameters: Schema = schema["function"].get("parameters", {})
                return parameters
        return {}
