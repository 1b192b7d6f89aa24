"""Toolset ``bash``: mini-swe-agent's only tool, with submission by a command.

The form of observations, the submit line and the length limits are those of mini-swe-agent 2 (its
config/default.yaml and environments/local.py); the wording differs. There is no tool ``submit``: a
command submits if it exits with 0 and the first line of its output is the submit line.
"""

from coding_gym.calls import ExecResult, ToolCall, ToolResult
from coding_gym.text.truncate import split_ends
from coding_gym.tools import prompts
from coding_gym.tools.commands import run_command
from coding_gym.tools.toolset import Tool, ToolContext, Toolset

SUBMIT_LINE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
OLD_SUBMIT_LINE = "MINI_SWE_AGENT_FINAL_OUTPUT"
MAX_OUTPUT_CHARS = 10_000  # outputs of at least this length are truncated

SYSTEM_PROMPT = f"""\
{prompts.INTRODUCTION}

Each reply has one or two lines of thought and exactly one bash command: as a call of the tool \
`bash` with the argument `command`, or in one block:

```bash
grep -rn 'def parse' src
```

Commands
- Each command {prompts.FRESH_SHELL}
- An output of {MAX_OUTPUT_CHARS:,} characters or more is truncated to its first and last \
{MAX_OUTPUT_CHARS // 2:,}, so read parts of files with sed, head or grep.
- Interactive programs do not work: edit files with sed, or write them with a here-document.
- The command `echo {SUBMIT_LINE}`, without other commands, submits and ends the work.

{prompts.HOW_TO_WORK}

{prompts.LAST_WORDS}"""

GUIDANCE = f"""\
Each reply must have EXACTLY ONE bash command, as a call of the tool `bash` with the argument \
`command`, or in a block:

```bash
your_command_here
```

To end the work, run only this command: `echo {SUBMIT_LINE}`"""

# The warning above the head and the tail of a long output.
TOO_LONG = (
    "The output was too long and its middle was omitted. Use head, tail, sed or a narrower search "
    "for a shorter output, or write the output to a file and search that file."
)


def _bash(call: ToolCall, context: ToolContext) -> ToolResult:
    result = run_command(call.arguments["command"], context)
    first_line = result.output.lstrip().partition("\n")[0]
    if result.ok and first_line.strip() in (SUBMIT_LINE, OLD_SUBMIT_LINE):
        return ToolResult("submitted", submitted=True)
    return ToolResult(_observation(result, context), ok=result.ok)


def _observation(result: ExecResult, context: ToolContext) -> str:
    """Returns the result of a command in mini-swe-agent's form, followed by notes."""
    output, notes = result.output, "".join(f"\n{note}" for note in result.notes)
    status = f"<returncode>{result.exit_code}</returncode>\n"
    if result.timed_out:
        message = f"the command was killed after {context.command_timeout_s:g} seconds"
        status = f"<exception>{message}</exception>\n<returncode>-1</returncode>\n"
    if len(output) < MAX_OUTPUT_CHARS:
        return f"{status}<output>\n{output}</output>{notes}"
    head, tail = split_ends(output, MAX_OUTPUT_CHARS)
    return (
        f"{status}<warning>\n{TOO_LONG}\n</warning>"
        f"<output_head>\n{head}\n</output_head>\n"
        f"<elided_chars>\n{len(output) - MAX_OUTPUT_CHARS} characters elided\n</elided_chars>\n"
        f"<output_tail>\n{tail}\n</output_tail>{notes}"
    )


BASH = Toolset(
    name="bash",
    system_prompt=SYSTEM_PROMPT,
    tools=(
        Tool(
            name="bash",
            description="Execute a bash command",
            parameters={"command": "The bash command to execute"},
            run=_bash,
        ),
    ),
    no_call_reply="Format error:\n\n<error>\nExpected exactly 1 action, found 0.\n</error>\n\n"
    + GUIDANCE,
    text_formats=("bash_block",),
    submission=ToolCall("bash", {"command": f"echo {SUBMIT_LINE}"}),
    refuse=lambda reason: f"Tool call error:\n\n<error>\n{reason}\n</error>\n\n{GUIDANCE}",
    unreadable="Error parsing tool call arguments: {call.error:.300}.",
    unknown="Unknown tool '{name}'.",
)
