#include "check.h"
#include "typeset.h"

static void an_empty_last_cell_is_nothing(void) {
    CHECK(same(columns("a\tb\nc\t\n"), "a  b\nc\n"));
}

static void empty_cells_at_the_end_are_nothing(void) {
    CHECK(same(columns("a\tb\tc\nd\t\t\n"), "a  b  c\nd\n"));
}

static void a_gap_inside_stays(void) {
    CHECK(same(columns("a\tbb\tc\nd\t\te\n"), "a  bb  c\nd      e\n"));
}

static void an_empty_first_cell_stays(void) {
    CHECK(same(columns("aa\tb\n\tc\n"), "aa  b\n    c\n"));
}

static void a_row_of_nothing_is_empty(void) {
    CHECK(same(columns("a\tb\n\t\nc\td\n"), "a  b\n\nc  d\n"));
}

static void the_text_may_end_in_a_tab(void) {
    CHECK(same(columns("a\tb\nc\t"), "a  b\nc\n"));
}

static void rows_may_be_short(void) {
    CHECK(same(columns("a\tb\nc\nd\te\n"), "a  b\nc\nd  e\n"));
}

int main(void) {
    RUN(an_empty_last_cell_is_nothing);
    RUN(empty_cells_at_the_end_are_nothing);
    RUN(a_gap_inside_stays);
    RUN(an_empty_first_cell_stays);
    RUN(a_row_of_nothing_is_empty);
    RUN(the_text_may_end_in_a_tab);
    RUN(rows_may_be_short);
    return DONE();
}
