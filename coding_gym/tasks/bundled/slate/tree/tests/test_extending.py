import pytest

from slate import Environment, RenderError, TemplateSyntaxError

PAGE = "<{% block title %}Shop{% endblock %}>{% block main %}-{% endblock %}"


def render(name, /, **variables):
    environment = Environment(
        {
            "page": PAGE,
            "offers": '{% extends "page" %} x {% block main %}{{ n }} offers{% endblock %}',
            "tea": '{% extends "offers" %}{% block title %}Tea, {% super %}{% endblock %}'
            "{% block main %}{% super %} of tea{% endblock %}",
            "deep": '{% extends "tea" %}{% block title %}*{% super %}{% endblock %}',
            "rows": "{% for x in xs %}{% block row %}[{{ x }}]{% endblock %}{% endfor %}",
            "last": '{% extends "rows" %}{% block row %}{% super %}{% if loop.last %}.{% endif %}'
            "{% endblock %}",
            "nested": "{% block a %}a{% block b %}b{% endblock %}{% endblock %}",
            "inner": '{% extends "nested" %}{% block b %}{% super %}B{% endblock %}',
            "outer": '{% extends "nested" %}{% block a %}A{% super %}{% endblock %}',
            "loop": '{% extends "loop" %}',
            "frame": "<{% include name %}>",
            "plain": "plain {{ n }}",
        }
    )
    return environment.render(name, **variables)


def test_blocks_print_their_content():
    assert render("page") == "<Shop>-"


def test_blocks_are_replaced():
    assert render("offers", n=3) == "<Shop>3 offers"


def test_any_number_of_steps():
    assert render("tea", n=3) == "<Tea, Shop>3 offers of tea"
    assert render("deep", n=3) == "<*Tea, Shop>3 offers of tea"


def test_blocks_in_loops_see_the_variables():
    assert render("last", xs="ab") == "[a][b]."


def test_blocks_in_blocks():
    assert [render("inner"), render("outer")] == ["abB", "Aab"]


def test_what_is_included_may_extend():
    assert render("frame", name="offers", n=2) == "<<Shop>2 offers>"
    assert render("frame", name="plain", n=2) == "<plain 2>"


def test_a_template_that_extends_itself_is_refused():
    with pytest.raises(RenderError, match="loop extends itself"):
        render("loop")


@pytest.mark.parametrize(
    "source",
    [
        "{% block a %}",
        "{% block a %}{% endblock %}{% block a %}{% endblock %}",
        "{% super %}",
        "{% extends a %}",
        '{% extends "a" %}{% extends "b" %}',
        "{% block a b %}{% endblock %}",
    ],
    ids=["open", "twice", "super", "name", "two", "rest"],
)
def test_malformed_tags_are_refused(source):
    with pytest.raises(TemplateSyntaxError):
        Environment({}).render_text(source)
