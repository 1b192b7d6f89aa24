"""The table of formats. Adding a family of models is adding a row here and a row to its test.

Where the marks of several rows match at the same place, the first row reads.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from coding_gym.arguments import unknown_name
from coding_gym.tools.formats.format import Format

AUTO = "auto"


def _invoke(name: str, prefix: str, section: str) -> Format:
    """Returns a row with the tags ``invoke`` and ``parameter``, and a tag around all calls."""
    tag = re.escape(prefix).replace("｜", "[｜|]") + " ?" * prefix.endswith("｜")
    is_string = ' string="{is_string}"' if prefix == "｜DSML｜" else ""
    return Format(
        name=name,
        body="tags",
        opens=f'<{tag}invoke name="(?P<name>[^"<>\\n]*)">',
        closes=f"</{tag}invoke>",
        argument=f'<{tag}parameter name="(?P<key>[^"<>\\n]*)"(?: string="\\w+")?>',
        argument_closes=f"</{tag}parameter>",
        section=f"</?{tag}(?:(?:function_|tool_)?calls|minimax:tool_call)>",
        written=f'<{prefix}invoke name="{{name}}">\n{{tags}}</{prefix}invoke>\n',
        written_argument=(
            f'<{prefix}parameter name="{{key}}"{is_string}>{{value}}</{prefix}parameter>\n'
        ),
        between="",
        around=(f"<{prefix}{section}>\n", f"</{prefix}{section}>"),
    )


def _list(name: str, opens: str, closes: str) -> Format:
    """Returns a row of calls in one JSON list between marks as they are written."""
    return Format(
        name=name,
        body="json",
        opens=re.escape(opens),
        closes=re.escape(closes),
        between=", ",
        around=(f"{opens}[", f"]{closes}"),
    )


def _python(name: str, opens: str, closes: str) -> Format:
    """Returns a row of a list of Python-like calls between marks as they are written."""
    return replace(_list(name, opens, closes), body="python", written="{name}({python})")


_SEP = "<[｜|]tool▁sep[｜|]>"
_TABLE: tuple[Format, ...] = (
    # -- Tags ---------------------------------------------------------------------------------
    Format(
        name="qwen3_coder",
        body="tags",
        opens=r"(?:<tool_call>\s*)?<function=(?P<name>[^<>\n]*)>",
        closes=r"</function>(?:\s*</tool_call>)?",
        argument=r"<parameter=(?P<key>[^<>\n]*)>",
        argument_closes="</parameter>",
        on_lines=True,
        written="<tool_call>\n<function={name}>\n{tags}</function>\n</tool_call>",
        written_argument="<parameter={key}>\n{value}\n</parameter>\n",
    ),
    Format(
        name="glm45",
        body="tags",
        opens=r"<tool_call>\s*(?P<name>[^\s<>{\[(\"']+)\s*(?=<arg_key>|</tool_call>)",
        closes="</tool_call>",
        argument=r"<arg_key>(?P<key>[^<>\n]*)</arg_key>\s*<arg_value>",
        argument_closes="</arg_value>",
        written="<tool_call>{name}\n{tags}</tool_call>",
        written_argument="<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n",
    ),
    _invoke("deepseek_v32", "｜DSML｜", "function_calls"),
    replace(
        _invoke("step3", "steptml:", ""),
        section="<｜tool_calls?_(?:begin|end)｜>(?:function)?|<｜tool_sep｜>",
        written='<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{name}">'
        "{tags}</steptml:invoke><｜tool_call_end｜>",
        written_argument='<steptml:parameter name="{key}">{value}</steptml:parameter>',
        around=("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),
    ),
    # -- Python-like calls --------------------------------------------------------------------
    replace(
        _python("olmo3", "<function_calls>", "</function_calls>"),
        opens=r"<function_calls>\s*(?=[^\W\d][\w.-]*\()",
        between="\n",
        around=("<function_calls>", "</function_calls>"),
    ),
    _invoke("minimax_m2", "", "minimax:tool_call"),  # behind olmo3, for <function_calls>
    replace(
        _python("pythonic", "<|python_start|>", "<|python_end|>"), is_bare=True, around=("[", "]")
    ),
    _python("lfm2", "<|tool_call_start|>", "<|tool_call_end|>"),
    Format(
        name="gemma4",
        body="gemma",
        opens=r"<\|tool_call>",
        closes=r"<tool_call\|>",
        written="<|tool_call>call:{name}{gemma}<tool_call|>",
        between="",
    ),
    # -- JSON ---------------------------------------------------------------------------------
    Format(
        name="openai",
        body="json",
        is_bare=True,
        written='{{"id": {id_json}, "type": "function", "function": {{"name": {name_json}, '
        '"arguments": {arguments_text}}}}}',
        between=", ",
        around=('{"role": "assistant", "content": "", "tool_calls": [', "]}"),
    ),
    Format(name="json", body="json", is_bare=True),
    Format(
        name="llama3",
        body="json",
        opens=r"<\|python_tag\|>",
        is_bare=True,
        arguments_key="parameters",
        written='{{"name": {name_json}, "parameters": {arguments}}}',
        between="; ",
    ),
    Format(  # NanoAgent's too, in a list
        name="hermes",
        body="json",
        opens="<tool_call>",
        closes="</tool_call>",
        written='<tool_call>{{"name": {name_json}, "arguments": {arguments}}}</tool_call>',
    ),
    _list("nemotron", "<TOOLCALL>", "</TOOLCALL>"),
    replace(  # and Phi-4
        _list("granite", "<|tool_call|>", "<|/tool_call|>"),
        opens=r"<\|tool_call\|>|functools(?=\[)",
        around=("<|tool_call|>[", "]"),
    ),
    _list("jamba", "<tool_calls>", "</tool_calls>"),  # and Hunyuan
    replace(
        _list("cohere", "<|START_ACTION|>", "<|END_ACTION|>"),
        name_key="tool_name",
        arguments_key="parameters",
        written='{{"tool_call_id": "{index}", "tool_name": {name_json}, '
        '"parameters": {arguments}}}',
    ),
    Format(
        name="mistral",
        body="json",
        opens=r"\[TOOL_CALLS\]",
        head=r"(?:(?P<name>[^\s\[\]{}]+)(?:\[CALL_ID\](?P<id>[^\s\[\]{}]*))?(?:\[ARGS\])?\s*(?=\{))?",
        written="[TOOL_CALLS]{name}[ARGS]{arguments}",
        between="",
    ),
    Format(
        name="harmony",
        body="channels",
        opens=r"<\|start\|>assistant|<\|channel\|>|to=functions\.",
        written="<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}"
        "<|call|>",
        between="<|start|>assistant",
    ),
    Format(
        name="deepseek_v3",
        body="json",
        opens="<[｜|]tool▁call▁begin[｜|]>",
        head=rf"(?:function{_SEP})?(?P<name>[^\s<{{`]+)\s*(?:{_SEP}\s*)?(?:```(?:json)?\s*)?",
        closes=r"(?:```\s*)?<[｜|]tool▁call▁end[｜|]>",
        section="<[｜|]tool▁calls▁(?:begin|end)[｜|]>",
        written="<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>",
        between="",
        around=("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    ),
    Format(
        name="kimi_k2",
        body="json",
        opens=r"<\|tool_call_begin\|>",
        head=r"(?P<id>(?:functions\.)?(?P<name>[^\s<>|]+?)(?::\d+)?)\s*"
        r"<\|tool_call_argument_begin\|>",
        closes=r"<\|tool_call_end\|>",
        section=r"<\|tool_calls?_section_(?:begin|end)\|>",
        written="<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{arguments}"
        "<|tool_call_end|>",
        between="",
        around=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    ),
    # -- Others -------------------------------------------------------------------------------
    Format(
        name="bash_block",
        body="block",
        opens=r"```(?:bash|mswea_bash_command)[ \t\r]*\n",  # the second is mini-swe-agent 2's
        closes=r"```[ \t\r]*$",
        written="```bash\n{command}\n```",
    ),
    Format(name="template", body="template"),
)
FORMATS: Mapping[str, Format] = MappingProxyType({row.name: row for row in _TABLE})
TOOL_FORMATS = (AUTO, *FORMATS)


def row_of(tool_format: str) -> Format:
    """Returns the row of a format; ``auto`` is written and explained as ``json``.

    Raises:
        UnknownNameError: There is no such format.
    """
    if not isinstance(tool_format, str) or tool_format not in TOOL_FORMATS:
        raise unknown_name("tool format", tool_format, TOOL_FORMATS)
    return FORMATS["json" if tool_format == AUTO else tool_format]
