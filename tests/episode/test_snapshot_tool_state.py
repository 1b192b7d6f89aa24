"""What a toolset remembers is part of a snapshot, and of each branch by itself."""

import json
from typing import Any

from coding_gym.episode import Episode
from coding_gym.task import Task
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools import get_toolset
from coding_gym.workspace import TemplateStore


def edit(command: str, **arguments: str) -> str:
    given = {"command": command, "path": "new.py", **arguments}
    return json.dumps({"name": "str_replace_editor", "arguments": given})


def test_edits_after_a_snapshot_are_not_undone_in_a_branch(tiny_row: dict[str, Any]) -> None:
    def make() -> Episode:
        return Episode(
            Task.from_row(tiny_row),
            TemplateStore().get,
            toolset=get_toolset("editor"),
            tokenizer=get_tokenizer("coding_gym_16k"),
        )

    episode, branch = make(), make()
    try:
        episode.start()
        episode.step(edit("create", file_text="one\n"))
        moment = episode.snapshot()
        episode.step(edit("str_replace", old_str="one", new_str="two"))
        branch.restore(moment)
        branch.step(edit("undo_edit"))
        look = json.dumps({"name": "bash", "arguments": {"command": "cat new.py"}})
        assert "No such file" in branch.step(look).text
    finally:
        episode.close()
        branch.close()
