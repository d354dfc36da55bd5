/* Polls, with work and with none in turn, and says whenever that has become different: `answered`
 * while a scheduler listens, `alone` otherwise; also whether it slept past its timer. Ends when it
 * has been answered so many times as it is told. */
#include <attune_coop.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
    attune_coop_poller *poller = attune_coop_join(count > 2 ? words[2] : "kernel");
    int times = count > 1 ? atoi(words[1]) : 1, before = -1;
    uint64_t until = 0;
    if (!poller)
        return fprintf(stderr, "%s\n", attune_coop_error()), 1;
    for (unsigned turn = 0; times > 0; turn++) {
        uint64_t timer = attune_coop_now() + 2000000;
        struct attune_coop_offer offer = {1, timer, turn % 2 ? turn : ATTUNE_COOP_NOTHING};
        struct attune_coop_answer answer;
        if (attune_coop_poll(poller, &offer, NULL, 0, &answer) || !answer.turn)
            return fprintf(stderr, "%s\n", attune_coop_error()), 1;
        if (turn % 2 == 0 && attune_coop_now() < timer)
            puts("woke too early");
        /* Alone it hears when to ask again: later, and the same time each time. */
        int answered = answer.until != until && answer.until < attune_coop_now() + 100000000;
        until = answer.until;
        if (answered != before) {
            before = answered;
            times -= before;
            puts(before ? "answered" : "alone");
            fflush(stdout);
        }
    }
    attune_coop_leave(poller);
    puts("well");
    return 0;
}
