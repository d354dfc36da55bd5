/* See importance.h. */
#include "importance.h"

int64_t importance_of(uint64_t presentation, int rank)
{
    uint64_t inside = presentation % WINDOW;
    return (int64_t)(presentation - inside + (WINDOW * (uint64_t)rank + inside) / RANKS);
}

int importance_rank_of_independent(uint64_t n)
{
    return n % 8 == 0 ? 0 : n % 4 == 0 ? 1 : n % 2 == 0 ? 2 : 3;
}
