#ifndef WIDTH_H
#define WIDTH_H

#include <stddef.h>

/* How wide the first bytes of a text are. */
size_t text_width(const char *text, size_t length);

/* How many bytes of a text are at most so wide, without cutting a character. */
size_t text_fit(const char *text, size_t length, size_t width);

#endif
