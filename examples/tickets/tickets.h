#ifndef TICKETS_H
#define TICKETS_H

/* Ends the program with a message unless it holds. */
void must(int holds, const char *what);

/* What reading and changing shared variables costs, as lines of JSON, one for each round. `before`
 * is called before the library is used first; the process that answers bare packets runs on that
 * CPU, -1: on any. */
void measure_before(int cpu);
void measure(int rounds);

#endif
