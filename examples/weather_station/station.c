/* A weather station: three sensors, a display and calculations, each a thread.
 *
 * Wind is read every 3 ticks, humidity every 6, the temperature every 10; the display is needed
 * from 100 degrees on. The rest of the time belongs to the calculations. The day is made up: the
 * temperature climbs to 104 degrees and falls again, once in 400 ticks.
 *
 * The firmware ends after ROUNDS rounds of the calculations and prints what they took. It is the
 * same under every policy: a policy without the imports `temperature` and `role` ignores them.
 */
#include "attune.h"
#include "board.h"

/* 25 MHz counts: a millisecond. */
#define COUNTS_A_TICK 25000

#ifndef ROUNDS
#define ROUNDS 20000
#endif

enum role { FAST, SLOW, DISPLAY, CALCULATION };
enum sensor { WIND, HUMIDITY, TEMPERATURE, SENSORS };

#define WINDOW 16

struct series {
    int32_t sample[WINDOW];
    int32_t sum, squares; /* of the window */
    uint32_t count;       /* of all samples so far */
    uint32_t latest;      /* ticks by which a sample was late, at most */
};

int16_t temperature = 60;

static struct series series[SENSORS];
static uint32_t refreshes;
static uint16_t digits[8];
static unsigned char stacks[5][768] __attribute__((aligned(8)));

static int32_t read_sensor(enum sensor sensor, uint32_t tick)
{
    uint32_t hour = tick % 400;
    uint32_t noise = (tick * 1103515245u + 12345u) >> 28;
    switch (sensor) {
    case WIND:
        return (int32_t)(10 + noise);
    case HUMIDITY:
        return (int32_t)(60 + noise / 2);
    default:
        return (int32_t)(64 + (hour < 200 ? hour : 400 - hour) / 5);
    }
}

/* The newest sample takes the place of the oldest. */
static void add(struct series *to, int32_t sample)
{
    int32_t *place = &to->sample[to->count++ % WINDOW];
    to->sum += sample - *place;
    to->squares += sample * sample - *place * *place;
    *place = sample;
}

static void sense(enum sensor sensor, uint32_t interval)
{
    struct series *to = &series[sensor];
    for (uint64_t due = interval;; due += interval) {
        uint32_t late;
        attune_sleep_until(due);
        late = (uint32_t)(attune_now() - due);
        add(to, read_sensor(sensor, (uint32_t)due));
        if (late > to->latest)
            to->latest = late;
        if (sensor == TEMPERATURE)
            temperature = (int16_t)to->sample[(to->count - 1) % WINDOW];
    }
}

static void wind(void *unused)
{
    (void)unused;
    sense(WIND, 3);
}

static void humidity(void *unused)
{
    (void)unused;
    sense(HUMIDITY, 6);
}

static void thermometer(void *unused)
{
    (void)unused;
    sense(TEMPERATURE, 10);
}

/* Seven segments a digit. */
static void refresh(void)
{
    static const uint8_t segments[10] = {0x3f, 0x06, 0x5b, 0x4f, 0x66,
                                         0x6d, 0x7d, 0x07, 0x7f, 0x6f};
    int32_t shown = temperature;
    for (uint32_t i = 0; i < 8; i++) {
        digits[i] = segments[shown % 10];
        shown /= 10;
    }
    refreshes++;
}

static void display(void *unused)
{
    (void)unused;
    for (;;) {
        if (temperature >= 100) {
            refresh();
            attune_sleep(1);
        } else {
            attune_yield();
        }
    }
}

/* Mean and variance of each series' window. */
static void calculate(int32_t mean[SENSORS], int32_t variance[SENSORS])
{
    for (uint32_t s = 0; s < SENSORS; s++) {
        mean[s] = series[s].sum / WINDOW;
        variance[s] = series[s].squares / WINDOW - mean[s] * mean[s];
    }
}

static void calculating(void *unused)
{
    int32_t mean[SENSORS], variance[SENSORS];
    uint32_t began = board_counter();
    (void)unused;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        calculate(mean, variance);
        attune_yield();
    }
    board_print_number("counts ", (int64_t)(board_counter() - began), "\n");
    board_print_number("ticks ", (int64_t)attune_now(), "\n");
    for (uint32_t s = 0; s < SENSORS; s++) {
        board_print_number("samples ", series[s].count, "");
        board_print_number(" latest ", series[s].latest, "\n");
    }
    board_print_number("refreshes ", refreshes, "\n");
    board_print_number("stack ", (int64_t)attune_stack_used(attune_self()), "\n");
    board_exit(0);
}

/* A policy without the import `role` has no such member. */
static void start(void (*entry)(void *), uint32_t number, enum role role)
{
    struct attune_imports imports = ATTUNE_IMPORTS;
#if ATTUNE_HAS_IMPORTS
    imports.role = role;
#else
    (void)role;
#endif
    attune_create(entry, NULL, stacks[number], sizeof stacks[number], &imports);
}

void attune_failed(const struct attune_failure *failure)
{
    board_print(failure->file);
    board_print_number(":", failure->line, ": ");
    board_print(failure->what);
    board_print("\n");
    board_exit(1);
}

int main(void)
{
    attune_init();
    board_start_ticks(COUNTS_A_TICK);
    start(wind, 0, FAST);
    start(humidity, 1, SLOW);
    start(thermometer, 2, SLOW);
    start(display, 3, DISPLAY);
    start(calculating, 4, CALCULATION);
    attune_run();
    return 1;
}
