/* retitled: writes a title over its arguments and its environment, as Redis and PostgreSQL do, and
 * then opens the device of rdma_cm. */
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char** environ;

/* The strings lie behind each other on the stack; the program goes on with copies. */
static void set_title(char** words) {
    char* end = words[0] + strlen(words[0]) + 1;
    for (char** word = words; *word != NULL; ++word) {
        end = *word == end ? end + strlen(end) + 1 : end;
    }
    for (char** variable = environ; *variable != NULL; ++variable) {
        if (*variable == end) {
            end += strlen(end) + 1;
        }
        *variable = strdup(*variable);
    }
    char* const begin = words[0];
    memset(begin, 0, (size_t)(end - begin));
    strcpy(begin, "x");
}

int main(int count, char** words) {
    (void)count;
    set_title(words);
    struct rdma_event_channel* const events = rdma_create_event_channel();
    if (events == NULL) {
        perror("rdma_create_event_channel");
        return 1;
    }
    rdma_destroy_event_channel(events);
    puts("opened");
    return 0;
}
