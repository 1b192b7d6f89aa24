#include "check.h"
#include "typeset.h"

static void lines_are_counted_in_characters(void) {
    CHECK(same(wrap("\303\274ber \303\266de", 8), "\303\274ber \303\266de\n"));
    CHECK(same(wrap("\303\274ber \303\266de", 7), "\303\274ber\n\303\266de\n"));
}

static void later_words_are_counted_too(void) {
    CHECK(same(wrap("\303\244 \303\244 \303\244 a", 5), "\303\244 \303\244 \303\244\na\n"));
}

static void words_are_cut_between_characters(void) {
    CHECK(same(wrap("a\342\202\254b\342\202\254c", 2), "a\342\202\254\nb\342\202\254\nc\n"));
}

static void four_bytes_are_one_character(void) {
    CHECK(same(wrap("\360\237\230\200\360\237\230\200 x", 4), "\360\237\230\200\360\237\230\200 x\n"));
}

static void columns_are_as_wide_as_they_look(void) {
    CHECK(same(columns("k\303\244se\t3\nbread\t12\n"), "k\303\244se   3\nbread  12\n"));
}

static void the_widest_cell_is_the_longest_to_look_at(void) {
    CHECK(same(columns("\342\202\254\342\202\254\tx\nabcd\ty\n"), "\342\202\254\342\202\254    x\nabcd  y\n"));
    CHECK(same(columns("\303\244\303\266\303\274\tx\nabcd\ty\n"), "\303\244\303\266\303\274   x\nabcd  y\n"));
}

static void plain_letters_are_as_before(void) {
    CHECK(same(columns("ab\tc\nd\te\n"), "ab  c\nd   e\n"));
    CHECK(same(wrap("ab cd", 2), "ab\ncd\n"));
}

int main(void) {
    RUN(lines_are_counted_in_characters);
    RUN(later_words_are_counted_too);
    RUN(words_are_cut_between_characters);
    RUN(four_bytes_are_one_character);
    RUN(columns_are_as_wide_as_they_look);
    RUN(the_widest_cell_is_the_longest_to_look_at);
    RUN(plain_letters_are_as_before);
    return DONE();
}
