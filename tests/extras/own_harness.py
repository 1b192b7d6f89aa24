"""A small harness that uses Chat Completions: a Python program in the sandbox's home folder."""

import json
from pathlib import Path

from coding_gym.agents.harness import Harness

AGENT = """
import json, subprocess, sys, urllib.request

url, key, problem = sys.argv[1:]
command = {"type": "object", "properties": {"cmd": {"type": "string"}}}
tools = [{"type": "function", "function": {"name": "shell", "parameters": command}}]
messages = [{"role": "user", "content": problem}]
for _ in range(3):
    body = json.dumps({"messages": messages, "tools": tools}).encode()
    headers = {"Authorization": "Bearer " + key}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as reply:
        messages.append(json.load(reply)["choices"][0]["message"])
    for call in messages[-1].get("tool_calls") or sys.exit():
        arguments = json.loads(call["function"]["arguments"])
        done = subprocess.run(str(arguments.get("cmd")), shell=True, capture_output=True, text=True)
        output = done.stdout + done.stderr
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})
"""
HARNESS = Harness(
    name="own",
    command="python3 ~/agent.py {base_url}/chat/completions {api_key} {problem}",
    files={"agent.py": AGENT},
)


def own_harness(folder: Path) -> str:
    """Writes a TOML file of the harness; returns its path."""
    file = folder / "own.toml"
    lines = ['name = "own"', f'command = "{HARNESS.command}"', "[files]"]
    file.write_text("\n".join([*lines, f'"agent.py" = {json.dumps(AGENT)}']), encoding="utf-8")
    return str(file)
