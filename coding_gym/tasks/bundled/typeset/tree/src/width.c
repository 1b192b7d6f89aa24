#include "width.h"

/* Bytes that go on with a character of UTF-8 begin with the bits 10. */
static int begins(char byte) {
    return ((unsigned char)byte & 0xC0) != 0x80;
}

size_t text_width(const char *text, size_t length) {
    size_t width = 0;
    for (size_t at = 0; at < length; at++)
        width += begins(text[at]);
    return width;
}

size_t text_fit(const char *text, size_t length, size_t width) {
    size_t at = 0;
    while (at < length && (!begins(text[at]) || width > 0))
        width -= begins(text[at++]);
    return at;
}
