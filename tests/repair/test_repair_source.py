import ast

import pytest

from coding_gym.repair.sites import sites
from coding_gym.repair.source import Edit, Source, apply_edits
from coding_gym.repair.units import units


def value_of(source: Source) -> ast.expr:
    statement = source.tree.body[-1]
    assert isinstance(statement, ast.Assign)
    return statement.value


def test_spans_count_characters_where_the_tree_counts_bytes() -> None:
    source = Source("a.py", 'x = "é€" + name\n')
    value = value_of(source)
    assert isinstance(value, ast.BinOp)
    assert source.segment(value.right) == "name"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_spans_hold_with_every_line_end(newline: str) -> None:
    source = Source("a.py", f"a = 1{newline}\x0cb = [2,{newline}  3]{newline}c = d{newline}")
    assert source.segment(value_of(source)) == "d"


def test_outer_takes_the_parentheses_inside_its_bounds_only() -> None:
    source = Source("a.py", "x = f( (a ) )\n")
    call = value_of(source)
    assert isinstance(call, ast.Call)
    low, high = source.span(call.func)[1] + 1, source.span(call)[1] - 1
    start, end = source.outer(call.args[0], low, high)
    assert source.text[start:end] == "(a )"


def test_edits_are_made_by_the_offsets_of_the_text_as_it_was() -> None:
    edits = [Edit("a", 0, 1, "long"), Edit("a", 4, 5, ""), Edit("a", 2, 2, "+")]
    assert apply_edits("a b c", edits) == "long +b "


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply_edits("abcdef", [Edit("a", 0, 3, "x"), Edit("a", 2, 4, "y")])


def test_edits_of_two_files_never_overlap() -> None:
    assert not Edit("a", 0, 3, "").overlaps(Edit("b", 0, 3, ""))
    assert Edit("a", 0, 3, "").overlaps(Edit("a", 2, 4, ""))
    assert not Edit("a", 0, 3, "").overlaps(Edit("a", 3, 4, ""))


def test_sites_know_their_function_loop_and_owner() -> None:
    text = "def f(xs):\n    '''Doc.'''\n    for x in xs:\n        if x:\n            g(x)\n"
    found = {site.statement.lineno: site for site in sites(Source("a.py", text))}
    assert sorted(found) == [1, 3, 4, 5]  # the docstring is no statement to repair
    call = found[5]
    assert call.function is found[1].statement
    assert call.loop is found[3].statement
    assert call.owner is found[4].statement
    assert found[3].loop is None


def test_units_are_functions_outside_functions_with_their_classes() -> None:
    text = "class A:\n    @cache\n    def f(self):\n        def g(): pass\n        return g\n"
    (unit,) = units(Source("a.py", text))
    assert (unit.function, unit.classes) == ("f", ("A",))
    assert (unit.line, unit.def_line, unit.body_line) == (2, 3, 4)
    for inside, place in ((True, "return g"), (True, "self"), (False, "cache")):
        start = text.index(place)
        assert unit.holds(Edit("a.py", start, start + 1, "x")) is inside
