#include "buffer.h"
#include "typeset.h"
#include "width.h"

#include <string.h>

static const char BLANKS[] = " \t\n";

struct paragraph {
    struct buffer *output;
    size_t width, used; /* of the line that is open */
};

static void end_line(struct paragraph *paragraph) {
    if (paragraph->used > 0)
        buffer_add(paragraph->output, "\n", 1);
    paragraph->used = 0;
}

static void add_piece(struct paragraph *paragraph, const char *piece, size_t length) {
    buffer_add(paragraph->output, piece, length);
    paragraph->used += text_width(piece, length);
}

static void add_word(struct paragraph *paragraph, const char *word, size_t length) {
    if (paragraph->used > 0) {
        if (paragraph->used + 1 + text_width(word, length) <= paragraph->width)
            add_piece(paragraph, " ", 1);
        else
            end_line(paragraph);
    }
    while (text_width(word, length) > paragraph->width) {
        size_t piece = text_fit(word, length, paragraph->width);
        add_piece(paragraph, word, piece);
        end_line(paragraph);
        word += piece;
        length -= piece;
    }
    add_piece(paragraph, word, length);
}

/* Whether there is an empty line among blanks. */
static int has_empty_line(const char *blanks, size_t length) {
    const char *first = memchr(blanks, '\n', length);
    return first != NULL && memchr(first + 1, '\n', length - (size_t)(first + 1 - blanks)) != NULL;
}

char *wrap(const char *text, int width) {
    struct buffer output = {0};
    struct paragraph paragraph = {.output = &output, .width = width < 1 ? 1 : (size_t)width};
    text += strspn(text, BLANKS);
    while (*text != '\0') {
        size_t word = strcspn(text, BLANKS);
        size_t blanks = strspn(text + word, BLANKS);
        add_word(&paragraph, text, word);
        text += word;
        if (has_empty_line(text, blanks) && text[blanks] != '\0') {
            end_line(&paragraph);
            buffer_add(&output, "\n", 1);
        }
        text += blanks;
    }
    end_line(&paragraph);
    return buffer_end(&output);
}
