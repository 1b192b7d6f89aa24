"""What a policy is told about the toolset ``bash``: its schema, its system prompt, its replies."""

from coding_gym.calls import ToolCall
from coding_gym.tools.prompt_parts import FRESH, INTRODUCTION, LAST_WORDS
from coding_gym.tools.samples import COMMANDS
from coding_gym.tools.schemas import Schema, function

SUBMIT_LINE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
OLD_SUBMIT_LINE = "MINI_SWE_AGENT_FINAL_OUTPUT"
MAX_OUTPUT_CHARS = 10_000  # an output as long as this is cut

SCHEMAS: tuple[Schema, ...] = (
    function("bash", "Execute a bash command", command="The bash command to execute"),
)

SYSTEM_PROMPT = f"""\
{INTRODUCTION}

Each reply has a line or two of thought and exactly one bash command, as a call of the tool `bash` \
or in one block:

```bash
grep -rn 'def parse' src
```

Commands
- Each command {FRESH}
- Of an output of {MAX_OUTPUT_CHARS:,} characters or more only the first and the last \
{MAX_OUTPUT_CHARS // 2:,} are shown, so read parts of files with sed, head or grep.
- Nothing interactive works: edit files with sed, or write them with a here-document.
- `echo {SUBMIT_LINE}`, alone in a command, submits: the work ends there.

How to work
1. Read the report, then the code it is about, before you change anything.
2. Reproduce the problem, if you can, with a short command or an existing test.
3. Make the smallest change that repairs the cause, in the style of the code around it.
4. Run the tests again, then submit.

{LAST_WORDS}"""

GUIDANCE = f"""\
Each reply must have EXACTLY ONE bash command, as a call of the tool `bash` with the argument \
`command`, or in a block:

```bash
your_command_here
```

To end the work, give this command alone: `echo {SUBMIT_LINE}`"""

# The notice between the head and the tail of a long output.
TOO_LONG = (
    "The output was too long and its middle was left out. Use head, tail, sed or a narrower search "
    "to see less at a time, or send the output to a file and search in that."
)

EXAMPLES: tuple[ToolCall, ...] = tuple(ToolCall("bash", {"command": c}) for c in COMMANDS)
SUBMISSION = ToolCall("bash", {"command": f"echo {SUBMIT_LINE}"})
