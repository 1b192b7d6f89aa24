import pytest

from slate import Environment, RenderError, Safe


def render(source, **variables):
    return Environment({}).render_text(source, **variables)


def test_values_are_escaped():
    assert render("<p>{{ a }}</p>", a="""<b> & "it's" """) == (
        "<p>&lt;b&gt; &amp; &quot;it&#39;s&quot; </p>"
    )


def test_safe_values_and_texts_of_the_template_are_not():
    assert render("{{ a }} {{ b|safe }} {{ '<hr>' }}", a=Safe("<b>"), b="<i>") == "<b> <i> <hr>"


def test_changed_text_is_escaped_once():
    assert render("{{ a|upper }}{{ b|trim }}", a="<b>", b=Safe(" <i> ")) == "&lt;B&gt;&lt;i&gt;"
    assert render("{{ a|escape|escape }}", a="<") == "&lt;"


def test_filters_chain_from_left_to_right():
    assert render("{{ a|trim|truncate(2)|upper }}", a="  bcd") == "B…"


def test_default_is_for_missing_and_none_only():
    source = "{{ a|default('-') }}"
    assert [render(source), render(source, a=None), render(source, a=0)] == ["-", "-", "0"]


def test_truncate_counts_its_end():
    assert render("{{ a|truncate(6) }}", a="abcdefg") == "abcde…"
    assert render("{{ a|truncate(7) }}", a="abcdefg") == "abcdefg"
    assert render("{{ a|truncate(6, '...') }}", a="abc defg") == "abc..."


def test_lists():
    assert render("{{ xs|sort|join }} {{ xs|length }}", xs=[3, 1, 2]) == "123 3"


def test_join():
    assert render("{{ xs|join(', ') }} {{ xs|join }}", xs=[1, "b", None]) == "1, b,  1b"


def test_join_can_put_markup_between_items():
    assert render("{{ lines|join('<br>') }}", lines=["one", "two"]) == "one<br>two"


def test_replace():
    assert render("{{ a|replace('-', '+') }}", a="1-2-3") == "1+2+3"
    with pytest.raises(RenderError, match="needs a text"):
        render("{{ a|replace('', '+') }}", a="1-2-3")


def test_replace_can_put_markup_into_text():
    source = "{{ a|replace('\\n', '<br>') }}"
    assert render(source, a="one\ntwo") == "one<br>two"


def test_joined_and_replaced_text_can_be_filtered_on():
    assert render("{{ xs|join(' & ')|upper }}", xs=["a"]) == "A"
    assert render("{{ xs|join(', ')|upper }}", xs=["a & b", "c"]) == "A &amp; B, C"
    assert render("{{ a|replace('_', ' ')|upper }}", a="a_&_b") == "A &amp; B"


def test_filters_of_your_own():
    environment = Environment({}, filters={"shout": lambda text: f"{text}!", "upper": str.lower})
    assert environment.render_text("{{ 'A'|shout }}{{ 'B'|upper }}") == "A!b"
