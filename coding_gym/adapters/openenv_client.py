"""The client of `coding_gym.adapters.openenv`. Importing this needs the extra ``openenv``.

with RepairClient(base_url="http://127.0.0.1:8000", message_timeout_s=600).sync() as client:
    result = client.reset(task_id="cronwise-working-days")
    result = client.step(RepairAction(text='{"name": "shell", "arguments": {"cmd": "ls"}}'))

``message_timeout_s`` must exceed the time of a grade, which is part of the last step.
"""

from typing import Any

from coding_gym.adapters.openenv import RepairAction, RepairObservation, RepairState
from coding_gym.optional import missing_extra

try:
    from openenv.core.client_types import StepResult
    from openenv.core.env_client import EnvClient
except ImportError as error:
    raise missing_extra("OpenEnv", "openenv") from error


class RepairClient(EnvClient[RepairAction, RepairObservation, RepairState]):
    """One connection to a server; ``sync()`` gives the same without ``await``."""

    def _step_payload(self, action: RepairAction) -> dict[str, Any]:
        return dict(action.model_dump(exclude={"metadata"}))

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[RepairObservation]:
        ends = {"reward": payload.get("reward"), "done": payload.get("done", False)}
        return StepResult(RepairObservation(**payload["observation"], **ends), **ends)

    def _parse_state(self, payload: dict[str, Any]) -> RepairState:
        return RepairState(**payload)
