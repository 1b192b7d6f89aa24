/* Text that grows. After a failure it stays empty, and its end is NULL. */
#ifndef BUFFER_H
#define BUFFER_H

#include <stddef.h>

struct buffer {
    char *text;
    size_t length, room;
    int failed;
};

void buffer_add(struct buffer *buffer, const char *text, size_t length);
void buffer_fill(struct buffer *buffer, char one, size_t count);

/* Gives the text away, ended by a NUL. */
char *buffer_end(struct buffer *buffer);

#endif
