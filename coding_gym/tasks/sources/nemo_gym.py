"""Reads NeMo Gym's rows: requests to a model, each with a row of another dataset.

The inner row is ``responses_create_params.metadata.instance_dict``, as JSON text or an object; in
older files its fields are next to ``responses_create_params``.
"""

import json
from collections.abc import Mapping
from typing import Any

from coding_gym.tasks.task_row import Row, row_error, value_of

_REQUEST = "responses_create_params"
_INSTANCE = f"{_REQUEST}.metadata.instance_dict"
# Fields of the request, which are not fields of the inner row.
_REQUEST_FIELDS = frozenset({_REQUEST, "agent_ref", "subset"})


def reads(row: Row) -> bool:
    """Returns whether a row is a request."""
    return _REQUEST in row


def inner_row(row: Row, position: str) -> Row:
    """Returns the row of another dataset that a request contains."""
    request = value_of(row, _REQUEST, dict[str, Any], position, {})
    row_fields = {key: value for key, value in row.items() if key not in _REQUEST_FIELDS}
    metadata = request.get("metadata")
    if not isinstance(metadata, Mapping) or metadata.get("instance_dict") is None:
        return row_fields
    inner = _instance(row, metadata["instance_dict"], position)
    split = metadata.get("split", row.get("split"))
    return ({"split": split} if isinstance(split, str) else {}) | inner


def _instance(row: Row, value: Any, position: str) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise row_error(row, position, _INSTANCE, f"is not JSON: {error}") from None
    if not isinstance(value, Mapping):
        raise row_error(row, position, _INSTANCE, f"must be a row of a dataset, got {value!r:.80}")
    # Some programs add fields of the request to the inner row.
    return {str(key): inner for key, inner in value.items() if key not in _REQUEST_FIELDS}
