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


def _invoke(name: str, prefix: str, section: str, is_string: str = "") -> Format:
    """Returns a row with the tags ``invoke`` and ``parameter``.

    Args:
        name: The row's name.
        prefix: The text in front of the names of tags.
        section: The name of the tag around all calls.
        is_string: The attribute of a parameter that says whether it is a string.
    """
    tag = re.escape(prefix.strip()).replace("｜", "[｜|]") + " ?" * prefix.endswith(("｜", " "))
    kind = rf'\s+{is_string}="(?P<is_string>\w+)"' if is_string else ""
    written = f' {is_string}="{{is_string}}"' if is_string else ""
    return Format(
        name=name,
        body="tags",
        opens=f'<{tag}invoke name="(?P<name>[^"<>\\n]*)">',
        closes=f"</{tag}invoke>",
        argument=f'<{tag}parameter name="(?P<key>[^"<>\\n]*)"{kind}>',
        argument_closes=f"</{tag}parameter>",
        section=f"</?{tag}(?:(?:function_|tool_)?calls|minimax:tool_call)>",
        written=f'<{prefix}invoke name="{{name}}">\n{{tags}}</{prefix}invoke>\n',
        written_argument=(
            f'<{prefix}parameter name="{{key}}"{written}>{{value}}</{prefix}parameter>\n'
        ),
        between="",
        around=(f"<{prefix}{section}>\n", f"</{prefix}{section}>"),
    )


def _python(name: str, opens: str, closes: str) -> Format:
    """Returns a row of a list of Python-like calls between marks as they are written."""
    return Format(
        name=name,
        body="python",
        opens=re.escape(opens),
        closes=re.escape(closes),
        written="{name}({python})",
        between=", ",
        around=(f"{opens}[", f"]{closes}"),
    )


def _gemma(name: str, opens: str, closes: str, quote: str) -> Format:
    """Returns a row of Gemma's calls between marks as they are written."""
    written = f"{opens}call:{{name}}{{gemma}}{closes}"
    row = replace(_python(name, opens, closes), quote=quote, written=written)
    return replace(row, between="", around=("", ""))


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


_QWEN = Format(
    name="qwen3_coder",
    body="tags",
    opens=r"(?:<tool_call>\s*)?<function=(?P<name>[^<>\n]*)>",
    closes=r"</function>(?:\s*</tool_call>)?",
    argument=r"<parameter=(?P<key>[^<>\n]*)>",
    argument_closes="</parameter>",
    on_lines=True,
    written="<tool_call>\n<function={name}>\n{tags}</function>\n</tool_call>",
    written_argument="<parameter={key}>\n{value}\n</parameter>\n",
)
_GLM = Format(
    name="glm45",
    body="tags",
    opens=r"<tool_call>\s*(?P<name>[^\s<>{\[(\"']+)\s*(?=<arg_key>|</tool_call>)",
    closes="</tool_call>",
    argument=r"<arg_key>(?P<key>[^<>\n]*)</arg_key>\s*<arg_value>",
    argument_closes="</arg_value>",
    written="<tool_call>{name}\n{tags}</tool_call>",
    written_argument="<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n",
)
_NANOAGENT = _list("nanoagent", "<tool_call>", "</tool_call>")
_PHI = replace(
    _list("phi4", "<|tool_call|>", "<|/tool_call|>"), opens=r"<\|tool_call\|>|functools(?=\[)"
)
_MISTRAL = Format(
    name="mistral",
    body="json",
    opens=r"\[TOOL_CALLS\]",
    head=r"(?:(?P<name>[^\s\[\]{}]+)(?:\[CALL_ID\](?P<id>[^\s\[\]{}]*))?(?:\[ARGS\])?\s*(?=\{))?",
    between=", ",
    around=("[TOOL_CALLS] [", "]"),
)
_MISTRAL_13 = replace(
    _MISTRAL,
    name="mistral_v13",
    written="[TOOL_CALLS]{name}[ARGS]{arguments}",
    between="",
    around=("", ""),
)
_V11 = "[TOOL_CALLS]{name}[CALL_ID]{mistral_id}[ARGS]{arguments}"
_SEP = "<[｜|]tool▁sep[｜|]>"
_DEEPSEEK = Format(
    name="deepseek_v3",
    body="json",
    opens="<[｜|]tool▁call▁begin[｜|]>",
    head=rf"(?:function{_SEP})?(?P<name>[^\s<{{`]+)\s*(?:{_SEP}\s*)?(?:```(?:json)?\s*)?",
    closes=r"(?:```\s*)?<[｜|]tool▁call▁end[｜|]>",
    section="<[｜|]tool▁calls▁(?:begin|end)[｜|]>",
    written="<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{arguments}\n```"
    "<｜tool▁call▁end｜>",
    around=("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
)

_TABLE: tuple[Format, ...] = (
    # -- Tags ---------------------------------------------------------------------------------
    _QWEN,
    replace(
        _QWEN,
        name="swe_agent",
        opens=r"<function=(?P<name>[^<>\n]*)>",
        written="<function={name}>\n{tags}</function>",
        written_argument="<parameter={key}>{value}</parameter>\n",
    ),
    _GLM,
    replace(
        _GLM,
        name="glm47",
        written="<tool_call>{name}{tags}</tool_call>",
        written_argument="<arg_key>{key}</arg_key><arg_value>{value}</arg_value>",
    ),
    _invoke("deepseek_v32", "｜DSML｜", "function_calls", "string"),
    _invoke("deepseek_v4", "｜DSML｜", "tool_calls", "string"),
    _invoke("deepseek_v41", "｜DSML｜ ", "calls", "string"),
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
    _gemma("gemma4", "<|tool_call>", "<tool_call|>", '<|"|>'),
    _gemma("functiongemma", "<start_function_call>", "<end_function_call>", "<escape>"),
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
    replace(
        _NANOAGENT,
        name="hermes",
        written='<tool_call>{{"name": {name_json}, "arguments": {arguments}}}</tool_call>',
        between="\n",
        around=("", ""),
    ),
    _NANOAGENT,
    _list("nemotron", "<TOOLCALL>", "</TOOLCALL>"),
    _PHI,
    replace(_PHI, name="granite", around=("<|tool_call|>[", "]")),
    _list("jamba", "<tool_calls>", "</tool_calls>"),  # Hunyuan's too
    replace(
        _list("cohere", "<|START_ACTION|>", "<|END_ACTION|>"),
        name_key="tool_name",
        arguments_key="parameters",
        written='{{"tool_call_id": "{index}", "tool_name": {name_json}, '
        '"parameters": {arguments}}}',
    ),
    _MISTRAL,
    replace(_MISTRAL_13, name="mistral_v11", written=_V11),
    _MISTRAL_13,
    Format(
        name="harmony",
        body="channels",
        opens=r"<\|start\|>assistant|<\|channel\|>|to=functions\.",
        written="<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}"
        "<|call|>",
        between="<|start|>assistant",
    ),
    _DEEPSEEK,
    replace(
        _DEEPSEEK,
        name="deepseek_v31",
        written="<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>",
        between="",
    ),
    Format(
        name="kimi_k2",
        body="json",
        opens=r"<\|tool_call_begin\|>",
        head=r"(?P<id>(?:functions\.)?(?P<name>[^\s<>|]+?)(?::\d+)?)\s*"
        r"<\|tool_call_argument_begin\|>",
        closes=r"<\|tool_call_end\|>",
        section=r"<\|tool_calls?_section_(?:begin|end)\|>",
        written="<|tool_call_begin|>{kimi_id}<|tool_call_argument_begin|>{arguments}"
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
