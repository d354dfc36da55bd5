#ifndef TICKETS_H
#define TICKETS_H

/* Ends the program with a message unless it holds. */
void must(int holds, const char *what);

/* What reading and changing shared variables costs, as lines of JSON, one for each round. `before`
 * is called before the library is used first. */
void measure_before(void);
void measure(int rounds);

#endif
