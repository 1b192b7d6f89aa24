"""A miniature of a QuixBugs checkout: one Python program that hangs, one on graphs, one in Java."""

import json
from pathlib import Path

from repositories import write_files

PYTHON = {"halve": "F.F.s", "reach": "F."}
JAVA = {"halve": "F."}

_HALVE = '''
def halve(numbers):
    result = []
    while numbers:
        result.append(numbers[0] // 2){end}
    return result
{more}
"""
Halve
halve



Input:
    numbers: A list of ints

Output:
    Their halves, rounded down
"""
'''
_CORRECT = (
    "\n\n"
    "def halve(numbers):\n"
    "    result = []\n"
    "    while numbers:\n"
    "        result.append(numbers[0] // 2)\n"
    "        numbers = numbers[1:]\n"
    "    return result\n"
    '"""\n'
    "def halve(numbers):\n"
    "    return [number // 2 for number in numbers]\n"
    '"""\n'
)
_PARAMETRISED = """\
import pytest
from load_testdata import load_json_testcases

if pytest.use_correct:
    from correct_python_programs.halve import halve
else:
    from python_programs.halve import halve

testdata = load_json_testcases(halve.__name__)


@pytest.mark.parametrize("input_data,expected", testdata)
def test_halve(input_data, expected):
    if input_data == ["slow"]:
        pytest.skip("too slow")
    found = halve(*input_data)
    assert (found[0] if found and not isinstance(expected, list) else found or None) == expected
"""
_CASES = [[[[8, 6]], [4, 3]], [[[]], None], [[[7]], 3], [[""], None], [["slow"], "a\nb"]]
_LOAD = """\
import json
from pathlib import Path


def load_json_testcases(name):
    path = Path(__file__).parent / f"../json_testcases/{name}.json"
    return [json.loads(line) for line in path.read_text().splitlines()]
"""
_REACH = 'def reach(node):\n    return {expression}\n\n\n"""\nReach\n\nOutput:\n    The end\n"""\n'
_REACH_TESTS = '''\
import pytest
from node import Node

if pytest.use_correct:
    from correct_python_programs.reach import reach
else:
    from python_programs.reach import reach


def test1():
    """Case 1: Two nodes
    Output: the second
    """
    second = Node(2)
    assert reach(Node(1, second)) == second


def test2():
    """Case 2: One node"""
    assert reach(None) is None
'''
_NODE = (
    "class Node:\n    def __init__(self, value, successor=None):\n"
    "        self.value, self.successor = value, successor\n"
)
_JAVA = """\
package {package};
{header}
public class HALVE {{
    public static int halve(int number) {{
        Node node = new Node(number);
        return node.value / {by};{hint}
    }}
}}
"""
_JAVA_NODE = (
    "package java_programs;\n\npublic class Node {\n    public final int value;\n\n"
    "    public Node(int value) {\n        this.value = value;\n    }\n}\n"
)
_JAVA_TESTS = """\
package java_testcases.junit;

public class HALVE_TEST {
    // @org.junit.Test public void test_none() { }
    @org.junit.Test(timeout = 3000)
    public void test_0() throws java.lang.Exception {
        int result = java_programs.HALVE.halve((int)8);
        org.junit.Assert.assertEquals( (int) 4, result);
    }

    @org.junit.Test(timeout = 3000)
    public void test_1() throws java.lang.Exception {
        int result = java_programs.HALVE.halve((int)0);
        org.junit.Assert.assertEquals( (int) 0, result);
    }
}
"""


def write_checkout(folder: Path) -> Path:
    """Writes the checkout; returns its folder."""
    files = {
        "python_programs/halve.py": _HALVE.format(end="", more="\n"),
        "correct_python_programs/halve.py": _CORRECT,
        "python_testcases/test_halve.py": _PARAMETRISED,
        "python_testcases/load_testdata.py": _LOAD,
        "python_testcases/node.py": _NODE,
        "json_testcases/halve.json": "\n".join(map(json.dumps, _CASES)) + "\n",
        "python_programs/reach.py": _REACH.format(expression="node"),
        "correct_python_programs/reach.py": _REACH.format(expression="node and node.successor"),
        "python_testcases/test_reach.py": _REACH_TESTS,
        "java_programs/HALVE.java": _JAVA.format(
            package="java_programs", header="", by=3, hint=" // 2 in correct version"
        ),
        "java_programs/Node.java": _JAVA_NODE,
        "correct_java_programs/HALVE.java": _JAVA.format(
            package="correct_java_programs",
            header="\nimport java_programs.Node;\n/*\n * Written by hand.\n */",
            by=2,
            hint="",
        ),
        "java_testcases/junit/HALVE_TEST.java": _JAVA_TESTS,
    }
    return write_files(folder, files)
