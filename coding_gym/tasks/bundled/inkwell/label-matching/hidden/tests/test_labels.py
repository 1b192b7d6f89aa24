import pytest

from inkwell import to_html

LINK = '<p><a href="/t">{}</a></p>\n'


@pytest.mark.parametrize(
    "used",
    ["Style Guide", "style guide", "STYLE GUIDE", "sTyLe gUiDe"],
    ids=["title", "lower", "upper", "mixed"],
)
@pytest.mark.parametrize("defined", ["Style Guide", "style guide"], ids=["title", "lower"])
def test_case_does_not_matter_on_either_side(used, defined):
    assert to_html(f"[{used}]\n\n[{defined}]: /t") == LINK.format(used)


@pytest.mark.parametrize(
    "link", ["[here][Guide]", "[here][GUIDE]", "[*here*][gUIDE]"], ids=["title", "upper", "mixed"]
)
def test_full_references(link):
    text = "<em>here</em>" if "*" in link else "here"
    assert to_html(f"{link}\n\n[guide]: /t") == LINK.format(text)


def test_collapsed_references_keep_their_own_spelling():
    assert to_html("[The Guide][]\n\n[the GUIDE]: /t") == LINK.format("The Guide")


@pytest.mark.parametrize(
    "label", ["style  guide", " style guide ", "style\nguide"], ids=["two", "around", "wrapped"]
)
def test_spacing_does_not_matter_where_a_label_is_used(label):
    assert to_html(f"[x][{label}]\n\n[style guide]: /t") == LINK.format("x")


@pytest.mark.parametrize("label", ["style   guide", "  style guide "], ids=["inside", "around"])
def test_spacing_does_not_matter_where_a_label_is_defined(label):
    assert to_html(f"[x][style guide]\n\n[{label}]: /t") == LINK.format("x")


def test_a_label_wrapped_in_a_quote():
    html = to_html("> as the [style\n> guide] says\n\n[style guide]: /t")
    assert '<a href="/t">style\nguide</a>' in html


def test_words_are_not_run_together():
    assert to_html("[styleguide]\n\n[style guide]: /t") == "<p>[styleguide]</p>\n"


@pytest.mark.parametrize("used", ["MASSE", "masse", "Ma\u00dfe"], ids=["upper", "lower", "sharp"])
def test_letters_that_change_with_case(used):
    assert to_html(f"[{used}]\n\n[ma\u00dfe]: /t") == LINK.format(used)


def test_the_first_of_two_equal_labels_counts():
    html = to_html("[guide]\n\n[Guide]: /t\n[GUIDE]: /other\n[guide]: /third")
    assert html == LINK.format("guide")


def test_titles_and_targets_keep_their_case():
    html = to_html('[a]\n\n[A]: /Path/X "A  Title"')
    assert html == '<p><a href="/Path/X" title="A  Title">a</a></p>\n'


def test_unknown_labels_stay_text():
    assert to_html("[Guide] [x][Guide]\n\n[guides]: /t") == "<p>[Guide] [x][Guide]</p>\n"
