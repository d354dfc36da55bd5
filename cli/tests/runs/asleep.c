/* Threads of one process that sleep: `asleep COUNT COMMAND..` runs a shell's command beside them,
 * and ends with its status. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *sleep_on(void *argument)
{
    for (;;)
        pause();
    return argument;
}

int main(int words, char **word)
{
    pthread_attr_t small;
    if (words != 3)
        return 2;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 14);
    for (int count = atoi(word[1]); count; count--) {
        pthread_t thread;
        if (pthread_create(&thread, &small, sleep_on, NULL)) {
            fprintf(stderr, "asleep: %d threads could not be made\n", count);
            return 2;
        }
    }
    sleep(1);
    _exit(WEXITSTATUS(system(word[2])));
}
