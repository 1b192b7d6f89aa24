#include "check.h"
#include "typeset.h"

static void a_long_word_is_cut(void) {
    CHECK(same(wrap("abcdefgh", 3), "abc\ndef\ngh\n"));
}

static void it_begins_a_line(void) {
    CHECK(same(wrap("x abcdef", 4), "x\nabcd\nef\n"));
}

static void words_follow_its_last_piece(void) {
    CHECK(same(wrap("abcdef g h", 4), "abcd\nef g\nh\n"));
}

static void pieces_may_come_out_even(void) {
    CHECK(same(wrap("abcdef gh", 3), "abc\ndef\ngh\n"));
}

static void characters_stay_whole(void) {
    CHECK(same(wrap("\303\274\303\266\303\244\303\237", 3), "\303\274\303\266\303\244\n\303\237\n"));
}

static void a_width_of_nothing_is_one(void) {
    CHECK(same(wrap("ab", 0), "a\nb\n"));
    CHECK(same(wrap("ab", -7), "a\nb\n"));
}

static void paragraphs_go_on(void) {
    CHECK(same(wrap("abcd\n\nef", 2), "ab\ncd\n\nef\n"));
}

static void a_word_that_fits_is_whole(void) {
    CHECK(same(wrap("a bcd", 3), "a\nbcd\n"));
}

int main(void) {
    RUN(a_long_word_is_cut);
    RUN(it_begins_a_line);
    RUN(words_follow_its_last_piece);
    RUN(pieces_may_come_out_even);
    RUN(characters_stay_whole);
    RUN(a_width_of_nothing_is_one);
    RUN(paragraphs_go_on);
    RUN(a_word_that_fits_is_whole);
    return DONE();
}
