"""The table of formats; a new format needs a row here and in test_formats_table.py.

If the marks of several rows match at one position, the first row is used.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from coding_gym.arguments import unknown_name
from coding_gym.text.families import CALL, UNEXPLAINED
from coding_gym.tools.formats.format import Format

AUTO = "auto"


def _invoke(name: str, prefix: str, section: str) -> Format:
    """Returns a row for the tags ``<prefix>invoke`` and ``<prefix>parameter``."""
    space = " ?" if prefix.endswith("｜") else ""
    tag = re.escape(prefix).replace("｜", "[｜|]") + space
    return Format(
        name=name,
        body="tags",
        opens=f'<{tag}invoke name="([^"<>\\n]*)">',
        closes=f"</{tag}invoke>",
        argument=f'<{tag}parameter name="([^"<>\\n]*)"(?: string="\\w+")?>',
        argument_closes=f"</{tag}parameter>",
        section=f"</?{tag}(?:(?:function_|tool_)?calls|minimax:tool_call)>",
        example=f'<{prefix}{section}>\n<{prefix}invoke name="TOOL_NAME">\n'
        f'<{prefix}parameter name="ARGUMENT">VALUE</{prefix}parameter>\n'
        f"</{prefix}invoke>\n</{prefix}{section}>",
    )


def _list(name: str, opens: str, closes: str) -> Format:
    """Returns a row of calls in one JSON list between literal marks."""
    return Format(
        name=name,
        body="json",
        opens=re.escape(opens),
        closes=re.escape(closes),
        example=f"{opens}[{CALL}]{closes}",
    )


def _python(name: str, opens: str, closes: str) -> Format:
    """Returns the format of Python-like calls in one list between literal marks."""
    example = f'{opens}[TOOL_NAME(ARGUMENT="VALUE")]{closes}'
    return replace(_list(name, opens, closes), body="python", example=example)


_SEP = "<[｜|]tool▁sep[｜|]>"
_TABLE: tuple[Format, ...] = (
    # -- Tags ---------------------------------------------------------------------------------
    Format(
        name="qwen3_coder",
        body="tags",
        opens=r"(?:<tool_call>\s*)?<function=([^<>\n]*)>",
        closes=r"</function>(?:\s*</tool_call>)?",
        argument=r"<parameter=([^<>\n]*)>",
        argument_closes="</parameter>",
        on_lines=True,
        parts=r"<parameter=[^<>\n]",
        example="<tool_call>\n<function=TOOL_NAME>\n<parameter=ARGUMENT>\nVALUE\n</parameter>\n</function>\n"
        "</tool_call>",
    ),
    Format(
        name="glm45",
        body="tags",
        opens=r"<tool_call>\s*([^\s<>{\[(\"']+)\s*(?=<arg_key>|</tool_call>)",
        closes="</tool_call>",
        argument=r"<arg_key>([^<>\n]*)</arg_key>\s*<arg_value>",
        argument_closes="</arg_value>",
        parts="<arg_(?:key|value)>",
        example="<tool_call>TOOL_NAME\n<arg_key>ARGUMENT</arg_key>\n<arg_value>VALUE</arg_value>\n</tool_call>",
    ),
    replace(
        _invoke("deepseek_v32", "｜DSML｜", "function_calls"),
        parts="</?｜DSML｜",
        example='<｜DSML｜function_calls>\n<｜DSML｜invoke name="TOOL_NAME">\n'
        '<｜DSML｜parameter name="ARGUMENT" string="true">VALUE</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    ),
    replace(
        _invoke("step3", "steptml:", ""),
        section="<｜tool_calls?_(?:begin|end)｜>(?:function)?|<｜tool_sep｜>",
        parts="</?steptml:",
        example="<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke "
        'name="TOOL_NAME"><steptml:parameter name="ARGUMENT">VALUE</steptml:parameter>'
        "</steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
    ),
    # -- Python-like calls --------------------------------------------------------------------
    replace(
        _python("olmo3", "<function_calls>", "</function_calls>"),
        opens=r"<function_calls>\s*(?=[^\W\d][\w.-]*\()",
        example='<function_calls>TOOL_NAME(ARGUMENT="VALUE")</function_calls>',
    ),
    _invoke("minimax_m2", "", "minimax:tool_call"),  # after olmo3: both read <function_calls>
    replace(
        _python("pythonic", "<|python_start|>", "<|python_end|>"),
        is_bare=True,
        example='[TOOL_NAME(ARGUMENT="VALUE")]',
    ),
    _python("lfm2", "<|tool_call_start|>", "<|tool_call_end|>"),
    Format(
        name="gemma4",
        body="gemma",
        opens=r"<\|tool_call>",
        closes=r"<tool_call\|>",
        parts=r"<(?:start|end)_function_call>",  # FunctionGemma's
        example='<|tool_call>call:TOOL_NAME{ARGUMENT:<|"|>VALUE<|"|>}<tool_call|>',
    ),
    # -- JSON ---------------------------------------------------------------------------------
    Format(
        name="openai",
        body="json",
        is_bare=True,
        example=UNEXPLAINED["openai"],
    ),
    Format(name="json", body="json", is_bare=True),
    Format(
        name="llama3",
        body="json",
        opens=r"<\|python_tag\|>",
        is_bare=True,
        example=CALL.replace("arguments", "parameters"),
    ),
    replace(  # also NanoAgent, which writes a list of calls
        _list("hermes", "<tool_call>", "</tool_call>"),
        example=UNEXPLAINED["auto"],
    ),
    _list("nemotron", "<TOOLCALL>", "</TOOLCALL>"),
    replace(  # also Phi-4
        _list("granite", "<|tool_call|>", "<|/tool_call|>"),
        opens=r"<\|tool_call\|>|functools(?=\[)",
        example=f"<|tool_call|>[{CALL}]",
    ),
    _list("jamba", "<tool_calls>", "</tool_calls>"),  # also Hunyuan
    replace(
        _list("cohere", "<|START_ACTION|>", "<|END_ACTION|>"),
        example='<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "TOOL_NAME", "parameters": '
        '{"ARGUMENT": "VALUE"}}]<|END_ACTION|>',
    ),
    Format(
        name="mistral",
        body="json",
        opens=r"\[TOOL_CALLS\]",
        head=r"(?:(?P<name>[^\s\[\]{}]+)(?:\[CALL_ID\](?P<id>[^\s\[\]{}]*))?(?:\[ARGS\])?\s*(?=\{))?",
        example='[TOOL_CALLS]TOOL_NAME[ARGS]{"ARGUMENT": "VALUE"}',
    ),
    Format(
        name="harmony",
        body="channels",
        opens=r"<\|start\|>assistant|<\|channel\|>|to=functions\.",
        parts=r"commentary to=|(?<!\S)to=\w+<\|message",
        example="<|channel|>commentary to=functions.TOOL_NAME <|constrain|>json<|message|>"
        '{"ARGUMENT": "VALUE"}<|call|>',
    ),
    Format(
        name="deepseek_v3",
        body="json",
        opens="<[｜|]tool▁call▁begin[｜|]>",
        head=rf"(?:function{_SEP})?(?P<name>[^\s<{{`]+)\s*(?:{_SEP}\s*)?(?:```(?:json)?\s*)?",
        closes=r"(?:```\s*)?<[｜|]tool▁call▁end[｜|]>",
        section="<[｜|]tool▁calls▁(?:begin|end)[｜|]>",
        parts="<[｜|]tool▁",
        example="<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>TOOL_NAME<｜tool▁sep｜>"
        '{"ARGUMENT": "VALUE"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    ),
    Format(
        name="kimi_k2",
        body="json",
        opens=r"<\|tool_call_begin\|>",
        head=r"(?P<id>(?:functions\.)?(?P<name>[^\s<>|]+?)(?::\d+)?)\s*"
        r"<\|tool_call_argument_begin\|>",
        closes=r"<\|tool_call_end\|>",
        section=r"<\|tool_calls?_section_(?:begin|end)\|>",
        parts=r"<\|tool_call_argument_begin\|>",
        example="<|tool_calls_section_begin|><|tool_call_begin|>functions.TOOL_NAME:0"
        '<|tool_call_argument_begin|>{"ARGUMENT": "VALUE"}<|tool_call_end|>'
        "<|tool_calls_section_end|>",
    ),
    # -- Others -------------------------------------------------------------------------------
    Format(
        name="bash_block",
        body="block",
        opens=r"```(?:bash|mswea_bash_command)[ \t\r]*\n",  # the second is mini-swe-agent 2's
        closes=r"```[ \t\r]*$",
        example="```bash\nVALUE\n```",
    ),
    Format(name="template", body="template", example=UNEXPLAINED["template"]),
)
FORMATS: Mapping[str, Format] = MappingProxyType({row.name: row for row in _TABLE})
TOOL_FORMATS = (AUTO, *FORMATS)


def row_of(tool_format: str) -> Format:
    """Returns the row of a format; for ``auto``, the row of ``json``.

    Raises:
        UnknownNameError: There is no such format.
    """
    if not isinstance(tool_format, str) or tool_format not in TOOL_FORMATS:
        raise unknown_name("tool format", tool_format, TOOL_FORMATS)
    return FORMATS["json" if tool_format == AUTO else tool_format]
