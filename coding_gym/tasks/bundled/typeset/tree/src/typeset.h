#ifndef TYPESET_H
#define TYPESET_H

#include <stddef.h>

char *wrap(const char *text, int width);
char *columns(const char *rows);

#endif
