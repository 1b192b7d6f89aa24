from types import SimpleNamespace

import pytest

from slate import Environment, RenderError, TemplateNotFoundError, TemplateSyntaxError


def render(source, **variables):
    return Environment({}).render_text(source, **variables)


def test_prints_names_attributes_and_keys():
    user = SimpleNamespace(name="Ann", tags=["new", "kind"])
    assert render("{{ user.name }} is {{ user.tags.1 }}", user=user) == "Ann is kind"
    assert render("{{ rows.0.price }}", rows=[{"price": 2.5}]) == "2.5"


def test_prints_nothing_for_what_is_missing():
    assert render("[{{ nobody.name }}{{ none }}{{ rows.7 }}]", rows=[1]) == "[]"
    assert render("[{{ rows.__class__ }}]", rows=[1]) == "[]"


def test_texts_and_comments_may_hold_markers():
    assert render("a{# {{ b }} #}c") == "ac"
    assert render("""{{ "}}" }} {{ 'it"s' }} {{ "a\\"b" }} {{ "%}" }}""") == '}} it"s a"b %}'


@pytest.mark.parametrize(
    ("size", "word"), [(0, "none"), (1, "one"), (5, "some"), (11, "many")], ids=str
)
def test_branches(size, word):
    source = (
        "{% if not size %}none{% elif size == 1 %}one"
        "{% elif size < 10 %}some{% else %}many{% endif %}"
    )
    assert render(source, size=size) == word


def test_operators():
    assert render("{{ a or b }}{{ a and b }}{{ not a }}", a=0, b=2) == "20True"
    assert render("{{ 2 in xs and not (3 in xs or -1 == y) }}", xs=[1, 2], y=1) == "True"


def test_loops_know_where_they_are():
    source = "{% for x in xs %}{{ loop.index }}{{ x }}{% if not loop.last %}, {% endif %}"
    assert render(source + "{% endfor %}", xs="abc") == "1a, 2b, 3c"


def test_the_outer_loop_goes_on_after_an_inner_one():
    source = (
        "{% for row in rows %}{% for x in row %}{{ x }}{% endfor %}"
        "={{ loop.index }} {% endfor %}[{{ loop }}{{ x }}]"
    )
    assert render(source, rows=["ab", "c"]) == "ab=1 c=2 []"


def test_a_loop_over_nothing():
    source = "[{% for x in xs %}{{ x }}{% endfor %}]"
    assert render(source, xs=[]) == render(source) == render(source, xs=None) == "[]"


def test_includes_see_the_variables():
    environment = Environment(
        {
            "list.html": '{% for item in items %}{% include "item.html" %}{% endfor %}',
            "item.html": "<li>{{ item }} {{ unit }}</li>",
        }
    )
    assert environment.render("list.html", items=[1, 2], unit="kg") == (
        "<li>1 kg</li><li>2 kg</li>"
    )


@pytest.mark.parametrize(
    ("source", "line"),
    [
        pytest.param("\n{{ a", 2, id="open-output"),
        pytest.param("{% if a %}\n\n", 1, id="open-if"),
        pytest.param("\n\n{% endif %}", 3, id="stray-end"),
        pytest.param("{{ a b }}", 1, id="two-names"),
        pytest.param("{{ a|shout }}", 1, id="filter"),
        pytest.param("{{ a ? b }}", 1, id="character"),
    ],
)
def test_syntax_errors_name_the_line(source, line):
    with pytest.raises(TemplateSyntaxError) as caught:
        render(source)
    assert caught.value.line == line


def test_values_that_do_not_fit_are_render_errors():
    with pytest.raises(RenderError, match="cannot loop over 7"):
        render("{% for x in n %}{% endfor %}", n=7)
    with pytest.raises(RenderError, match="cannot compare"):
        render("{{ a < b }}", a=1, b="2")


def test_unknown_templates_are_named():
    environment = Environment({"page.html": "{% include name %}"})
    with pytest.raises(TemplateNotFoundError, match="nowhere.html"):
        environment.render("nowhere.html")
    with pytest.raises(TemplateNotFoundError, match="menu.html"):
        environment.render("page.html", name="menu.html")
