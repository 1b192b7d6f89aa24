"""NeMo Gym's rows: a request for a model around a row of another dataset.

The other row is ``responses_create_params.metadata.instance_dict``, as JSON text or an object; in
older files its fields stand beside ``responses_create_params``.
"""

import json
from collections.abc import Mapping
from typing import Any

from coding_gym.row_reader import RowReader
from coding_gym.tasks.sources.kinds import Row, RowFormat

_REQUEST = "responses_create_params"
_PLACE = f"{_REQUEST}.metadata.instance_dict"
# What NeMo Gym reads itself.
_OWN = frozenset({_REQUEST, "agent_ref", "subset"})


def _to_row(row: Row, where: str) -> Row:
    reader = RowReader(row, where)
    request = row.get(_REQUEST)
    if not isinstance(request, Mapping):
        if _REQUEST in row:
            raise reader.wrong(_REQUEST, "an object")
        raise reader.error(_REQUEST, "is missing")
    row_fields = {key: value for key, value in row.items() if key not in _OWN}
    metadata = request.get("metadata")
    if not isinstance(metadata, Mapping) or metadata.get("instance_dict") is None:
        return row_fields
    inner = _instance(metadata["instance_dict"], reader)
    split = metadata.get("split", row.get("split"))
    return ({"split": split} if isinstance(split, str) else {}) | inner


def _instance(value: Any, reader: RowReader) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise reader.error(_PLACE, f"is not JSON: {error}") from None
    if not isinstance(value, Mapping):
        raise RowReader({_PLACE: value}, reader.where).wrong(_PLACE, "a row of a dataset")
    # Written by other programs, some beside what they add for themselves.
    return {str(key): inner for key, inner in value.items() if key not in _OWN}


NEMO_GYM = RowFormat(
    name="nemo-gym", reads=lambda row: _REQUEST in row, to_row=_to_row, is_wrapper=True
)
