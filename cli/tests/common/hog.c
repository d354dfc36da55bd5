/* Computes until it is killed. */
#include "work.h"

int main(void)
{
    for (;;)
        work();
}
