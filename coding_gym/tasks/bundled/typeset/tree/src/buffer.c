#include "buffer.h"

#include <stdlib.h>
#include <string.h>

static int has_room(struct buffer *buffer, size_t more) {
    if (buffer->failed)
        return 0;
    if (buffer->length + more > buffer->room) {
        size_t room = 2 * (buffer->length + more);
        char *text = realloc(buffer->text, room);
        if (text == NULL) {
            free(buffer->text);
            *buffer = (struct buffer){.failed = 1};
            return 0;
        }
        buffer->text = text;
        buffer->room = room;
    }
    return 1;
}

void buffer_add(struct buffer *buffer, const char *text, size_t length) {
    if (length > 0 && has_room(buffer, length)) {
        memcpy(buffer->text + buffer->length, text, length);
        buffer->length += length;
    }
}

void buffer_fill(struct buffer *buffer, char one, size_t count) {
    while (count-- > 0)
        buffer_add(buffer, &one, 1);
}

char *buffer_end(struct buffer *buffer) {
    buffer_add(buffer, "", 1);
    return buffer->text;
}
