#include "buffer.h"
#include "typeset.h"
#include "width.h"

#include <string.h>

enum { MOST_COLUMNS = 64, GAP = 2 };

/* Goes over the cells of a row, and to the row after it. */
struct cell {
    const char *text;
    size_t length;
    int column;
    int is_last; /* in its row */
};

static int next_cell(const char **rows, struct cell *cell) {
    if (**rows == '\0' && cell->is_last)
        return 0;
    cell->column = cell->is_last ? 0 : cell->column + 1;
    cell->text = *rows;
    cell->length = strcspn(*rows, "\t\n");
    *rows += cell->length;
    cell->is_last = **rows != '\t' || cell->column == MOST_COLUMNS - 1;
    *rows += **rows != '\0';
    return 1;
}

static void measure(const char *rows, size_t widths[MOST_COLUMNS]) {
    struct cell cell = {.is_last = 1};
    while (next_cell(&rows, &cell)) {
        size_t width = text_width(cell.text, cell.length);
        if (width > widths[cell.column])
            widths[cell.column] = width;
    }
}

char *columns(const char *rows) {
    size_t widths[MOST_COLUMNS] = {0};
    struct buffer output = {0};
    struct cell cell = {.is_last = 1};
    size_t missing = 0; /* blanks that only stand if something follows */
    measure(rows, widths);
    while (next_cell(&rows, &cell)) {
        if (cell.length > 0) {
            buffer_fill(&output, ' ', missing);
            buffer_add(&output, cell.text, cell.length);
            missing = 0;
        }
        missing += widths[cell.column] - text_width(cell.text, cell.length) + GAP;
        if (cell.is_last) {
            buffer_add(&output, "\n", 1);
            missing = 0;
        }
    }
    return buffer_end(&output);
}
