import pytest

from slate import Environment, RenderError

TEMPLATES = {
    "page": "<title>{% block title %}Shop{% endblock %}</title>{% block main %}{% endblock %}",
    "box": "[{% block title %}Box{% endblock %}:{% block text %}{% endblock %}]",
    "opening": '{% extends "box" %}{% block title %}Open today{% endblock %}',
    "contact": '{% extends "box" %}{% block title %}Call us, {% super %}{% endblock %}'
    "{% block text %}{{ phone }}{% endblock %}",
    "home": '{% extends "page" %}{% block title %}Home{% endblock %}'
    '{% block main %}{% include "opening" %}{% include "contact" %}{% endblock %}',
}
OPENING, CONTACT, BOX = "[Open today:]", "[Call us, Box:12]", "[Box:]"


def render(source, /, templates=(), **variables):
    environment = Environment({**TEMPLATES, **dict(templates)})
    return environment.render_text(source, phone=12, **variables)


def extending(parent, **blocks):
    return f'{{% extends "{parent}" %}}' + "".join(
        f"{{% block {name} %}}{text}{{% endblock %}}" for name, text in blocks.items()
    )


def include(*names):
    return "".join(f'{{% include "{name}" %}}' for name in names)


def test_the_page_and_its_boxes_have_blocks_of_the_same_name():
    environment = Environment(TEMPLATES)
    assert environment.render("home", phone=12) == f"<title>Home</title>{OPENING}{CONTACT}"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("opening", "contact"), OPENING + CONTACT),
        (("contact", "opening"), CONTACT + OPENING),
        (("box", "opening", "box"), BOX + OPENING + BOX),
        (("contact", "contact", "contact"), CONTACT * 3),
        (("home", "contact"), f"<title>Home</title>{OPENING}{CONTACT}{CONTACT}"),
    ],
    ids=["two", "turned", "around", "same", "page"],
)
def test_boxes_one_after_the_other(names, expected):
    assert render(include(*names)) == expected


def test_boxes_in_a_loop():
    source = "{% for name in names %}{% include name %}{% endfor %}"
    assert render(source, names=["contact", "box", "contact"]) == CONTACT + BOX + CONTACT


def test_a_box_in_a_block_of_its_own_name():
    source = extending("page", title="A " + include("contact") + " B")
    assert render(source) == f"<title>A {CONTACT} B</title>"
    assert render(extending("box", title=include("box"))) == f"[{BOX}:]"


def test_the_replaced_version_includes_a_box():
    wide = "<{% block title %}" + include("contact") + "{% endblock %}>"
    source = extending("wide", title="{% super %} and {% super %}")
    assert render(source, {"wide": wide}) == f"<{CONTACT} and {CONTACT}>"
    assert render(extending("wide", title="{% super %}"), {"wide": wide}) == f"<{CONTACT}>"


def test_versions_over_several_steps_include_boxes():
    templates = {
        "first": "<{% block title %}1" + include("opening") + "{% endblock %}>",
        "second": extending("first", title="2" + include("contact") + "{% super %}"),
        "third": extending("second", title="3{% super %}" + include("contact")),
    }
    source = extending("third", title=include("second") + "{% super %}")
    second = f"<2{CONTACT}1{OPENING}>"
    assert render(source, templates) == f"<{second}32{CONTACT}1{OPENING}{CONTACT}>"


def test_the_version_below_is_the_same_after_an_include():
    source = extending("box", title=include("contact") + "{% super %}" + include("opening"))
    assert render(source) == f"[{CONTACT}Box{OPENING}:]"


def test_a_box_without_anything_to_replace():
    templates = {"lone": "{% block title %}lone{% super %}{% endblock %}"}
    source = extending("box", title=include("lone") + "{% super %}")
    assert render(source, templates) == "[loneBox:]"


def test_a_template_that_includes_itself():
    templates = {
        "map": extending(
            "box",
            title="{{ node.name }} {% super %}",
            text="{% for node in node.below %}" + include("map") + "{% endfor %}{% super %}",
        )
    }
    below = [{"name": "b", "below": [{"name": "c"}]}, {"name": "d"}]
    expected = "[a Box:[b Box:[c Box:]][d Box:]]"
    assert render(include("map"), templates, node={"name": "a", "below": below}) == expected
    page = extending("page", title="Map, {% super %}", main=include("map"))
    assert render(page, templates, node={"name": "d"}) == "<title>Map, Shop</title>[d Box:]"


def test_a_template_that_includes_itself_in_a_version_that_is_replaced():
    templates = {
        "list": "({% block item %}{{ n.name }}{% for n in n.below %}"
        + include("items")
        + "{% endfor %}{% endblock %})",
        "items": extending("list", item="-{% super %}-"),
    }
    node = {"name": "a", "below": [{"name": "b", "below": [{"name": "c"}]}, {"name": "d"}]}
    assert render(include("items"), templates, n=node) == "(-a(-b(-c-)-)(-d-)-)"


def test_the_page_goes_on_with_its_own_blocks():
    templates = {"late": include("contact") + "<{% block title %}Late{% endblock %}>"}
    assert render(include("late"), templates) == f"{CONTACT}<Late>"
    assert render(extending("late", title="{% super %}r"), templates) == f"{CONTACT}<Later>"


def test_blocks_of_a_page_do_not_reach_into_what_it_includes():
    templates = {"twice": include("box") + "{% block text %}t{% endblock %}" + include("contact")}
    source = extending("twice", text="T", title="X")
    assert render(source, templates) == f"{BOX}T{CONTACT}"


def test_what_is_included_sees_the_variables():
    source = "{% for phone in xs %}" + include("contact") + "{% endfor %}"
    assert render(source, xs=[1, 2]) == "[Call us, Box:1][Call us, Box:2]"


def test_an_environment_renders_each_template_as_if_it_were_the_first():
    environment = Environment(TEMPLATES)
    names = ["home", "opening", "box", "contact", "page", "home"]
    alone = [Environment(TEMPLATES).render(name, phone=12) for name in names]
    assert [environment.render(name, phone=12) for name in names] == alone


def test_an_included_template_that_extends_itself_is_refused():
    with pytest.raises(RenderError, match="knot extends itself"):
        render(include("box", "knot"), {"knot": extending("knot")})
