#include "check.h"
#include "typeset.h"

static void short_text_is_one_line(void) {
    CHECK(same(wrap("one two", 20), "one two\n"));
}

static void lines_break_at_blanks(void) {
    CHECK(same(wrap("the quick brown fox", 12), "the quick\nbrown fox\n"));
}

static void blanks_are_one(void) {
    CHECK(same(wrap("  one \t two\nthree ", 20), "one two three\n"));
}

static void paragraphs_stay(void) {
    CHECK(same(wrap("one\n\n\ntwo\n\n", 9), "one\n\ntwo\n"));
}

static void nothing_is_nothing(void) {
    CHECK(same(wrap("", 9), ""));
    CHECK(same(wrap(" \n\n ", 9), ""));
}

int main(void) {
    RUN(short_text_is_one_line);
    RUN(lines_break_at_blanks);
    RUN(blanks_are_one);
    RUN(paragraphs_stay);
    RUN(nothing_is_nothing);
    return DONE();
}
