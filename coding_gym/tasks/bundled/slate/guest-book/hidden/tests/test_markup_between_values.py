from slate import Environment, Safe


def render(source, **variables):
    return Environment({}).render_text(source, **variables)


def test_joined_items_are_escaped_between_markup():
    names = ["Ann", "<script>alert(1)</script>", "Tom & Co"]
    assert render("{{ names|join('<br>') }}", names=names) == (
        "Ann<br>&lt;script&gt;alert(1)&lt;/script&gt;<br>Tom &amp; Co"
    )


def test_joined_items_are_escaped_between_plain_text():
    assert render("{{ names|join(', ') }}", names=["<b>", "c"]) == "&lt;b&gt;, c"


def test_text_around_replacements_is_escaped():
    comment = "1 < 2\n<img src=x onerror='alert(1)'>"
    assert render(r"{{ comment|replace('\n', '<br>') }}", comment=comment) == (
        "1 &lt; 2<br>&lt;img src=x onerror=&#39;alert(1)&#39;&gt;"
    )


def test_text_around_plain_replacements_is_escaped():
    assert render("{{ a|replace('-', '+') }}", a="<1-2>") == "&lt;1+2&gt;"


def test_special_characters_can_be_looked_for():
    assert render("{{ a|replace('&', '<i>and</i>') }}", a="a & b < c") == "a <i>and</i> b &lt; c"
    assert render("{{ a|replace('<', '(') }}", a="<b>") == "(b&gt;"


def test_safe_items_stay_as_they_are():
    links = [Safe("<a href='/'>home</a>"), "<b>"]
    assert render("{{ links|join(' ') }}", links=links) == "<a href='/'>home</a> &lt;b&gt;"
    assert render("{{ links|join('<hr>') }}", links=links) == "<a href='/'>home</a><hr>&lt;b&gt;"


def test_separators_from_outside_are_escaped():
    source = "{{ names|join(separator) }}"
    assert render(source, names=["a", "b"], separator="<hr>") == "a&lt;hr&gt;b"
    assert render(source, names=["a", "<b>"], separator=Safe("<hr>")) == "a<hr>&lt;b&gt;"


def test_replacements_from_outside_are_escaped():
    source = "{{ a|replace('x', new) }}"
    assert render(source, a="<x>", new="<hr>") == "&lt;&lt;hr&gt;&gt;"
    assert render(source, a="<x>", new=Safe("<hr>")) == "&lt;<hr>&gt;"


def test_safe_text_keeps_its_markup_when_part_of_it_is_replaced():
    assert render("{{ a|replace('-', '<br>') }}", a=Safe("<b>1-2</b>")) == "<b>1<br>2</b>"


def test_nothing_is_escaped_twice():
    assert render("{{ names|join('<br>')|escape }}", names=["a & b"]) == "a &amp; b"
    assert render("{{ a|replace('-', '<br>')|replace('+', '<hr>') }}", a="1-2+&") == (
        "1<br>2<hr>&amp;"
    )


def test_values_of_other_types_can_be_joined():
    assert render("{{ xs|join('<br>') }}", xs=[1, None, 2.5]) == "1<br><br>2.5"
    assert render("{{ xs|join('<br>') }}") == ""


def test_plain_results_can_still_be_filtered_on():
    assert render("{{ xs|join(' and ')|upper }}", xs=["a", "<b>"]) == "A AND &lt;B&gt;"
    assert render("{{ a|replace('-', ' ')|truncate(5) }}", a="a-&-b-c") == "a &amp;…"
