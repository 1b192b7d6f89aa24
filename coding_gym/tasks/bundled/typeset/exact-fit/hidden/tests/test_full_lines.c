#include "check.h"
#include "typeset.h"

static void a_line_may_be_full(void) {
    CHECK(same(wrap("the quick brown fox", 9), "the quick\nbrown fox\n"));
}

static void the_last_line_may_be_full(void) {
    CHECK(same(wrap("a bc de", 4), "a bc\nde\n"));
    CHECK(same(wrap("ab cd", 5), "ab cd\n"));
}

static void one_more_is_too_much(void) {
    CHECK(same(wrap("ab cde", 5), "ab\ncde\n"));
}

static void a_single_word_may_be_full(void) {
    CHECK(same(wrap("quick fox", 5), "quick\nfox\n"));
}

static void letters_stand_alone(void) {
    CHECK(same(wrap("a b c", 1), "a\nb\nc\n"));
    CHECK(same(wrap("a b c", 3), "a b\nc\n"));
}

int main(void) {
    RUN(a_line_may_be_full);
    RUN(the_last_line_may_be_full);
    RUN(one_more_is_too_much);
    RUN(a_single_word_may_be_full);
    RUN(letters_stand_alone);
    return DONE();
}
