/* A test is a function without arguments; what it CHECKs must be true. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failed, check_number, check_failures;

#define CHECK(what)                                              \
    do {                                                         \
        if (!(what)) {                                           \
            check_failed = 1;                                    \
            printf("# line %d: not %s\n", __LINE__, #what);      \
        }                                                        \
    } while (0)

#define RUN(test)                                                              \
    do {                                                                       \
        check_failed = 0;                                                      \
        test();                                                                \
        check_failures += check_failed;                                        \
        printf("%sok %d - %s\n", check_failed ? "not " : "", ++check_number, #test); \
    } while (0)

#define DONE() (printf("1..%d\n", check_number), check_failures ? 1 : 0)

/* Whether a text is as wanted; frees it, and shows it where it is not. */
static inline int same(char *got, const char *wanted) {
    int is_same = got != NULL && strcmp(got, wanted) == 0;
    if (!is_same)
        for (char *line = strtok(got, "\n"); line != NULL; line = strtok(NULL, "\n"))
            printf("#   |%s|\n", line);
    free(got);
    return is_same;
}

#endif
