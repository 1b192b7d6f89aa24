#include "check.h"
#include "typeset.h"

static void cells_are_padded(void) {
    CHECK(same(columns("one\ttwo\nthree\tfour\n"), "one    two\nthree  four\n"));
}

static void one_column_is_as_it_was(void) {
    CHECK(same(columns("b\naa\n"), "b\naa\n"));
}

static void the_last_line_may_lack_its_end(void) {
    CHECK(same(columns("a\tb\ncc\td"), "a   b\ncc  d\n"));
}

static void no_rows_are_no_lines(void) {
    CHECK(same(columns(""), ""));
}

int main(void) {
    RUN(cells_are_padded);
    RUN(one_column_is_as_it_was);
    RUN(the_last_line_may_lack_its_end);
    RUN(no_rows_are_no_lines);
    return DONE();
}
