/* See counts.h. */
#include "counts.h"

#include <stdlib.h>

static const char *const rank_names[2][RANKS] = {
    {"key", "reference", "reference B", "disposable"},
    {"every 8th", "every 4th", "every 2nd", "other"},
};

void samples_add(struct samples *samples, uint64_t value)
{
    if (samples->count == samples->room) {
        size_t room = samples->room == 0 ? 1024 : samples->room * 2;
        uint64_t *values = realloc(samples->values, room * sizeof *values);
        if (values == NULL)
            return; /* one sample fewer */
        samples->values = values;
        samples->room = room;
    }
    samples->values[samples->count++] = value;
}

void samples_free(struct samples *samples)
{
    free(samples->values);
    *samples = (struct samples){0};
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The smallest sample that so many of a thousand do not exceed, in microseconds. */
static double permille(const struct samples *samples, size_t part)
{
    if (samples->count == 0)
        return 0;
    size_t rank = (samples->count * part + 999) / 1000;
    return (double)samples->values[rank == 0 ? 0 : rank - 1] / 1e3;
}

uint64_t counts_sum(const uint64_t by_rank[RANKS])
{
    uint64_t sum = 0;
    for (int i = 0; i < RANKS; i++)
        sum += by_rank[i];
    return sum;
}

static void sort(const struct samples *samples)
{
    if (samples->count > 0)
        qsort(samples->values, samples->count, sizeof samples->values[0], ascending);
}

static void print_samples(FILE *out, const char *name, const struct samples *samples)
{
    if (samples->count == 0)
        return;
    sort(samples);
    fprintf(out, "  %-26s %9.1f %9.1f %9.1f %9.1f\n", name, permille(samples, 500),
            permille(samples, 990), permille(samples, 999), permille(samples, 1000));
}

void counts_print(FILE *out, const struct counts *counts, bool independent)
{
    fprintf(out, "  %-12s %9s %9s %9s %9s %9s\n", "frames", "read", "shown", "expired", "dropped",
            "broken");
    for (int i = 0; i < RANKS; i++)
        if (counts->read[i] > 0)
            fprintf(out, "  %-12s %9lu %9lu %9lu %9lu %9lu\n", rank_names[independent][i],
                    counts->read[i], counts->shown[i], counts->expired[i], counts->dropped[i],
                    counts->broken[i]);
    fprintf(out, "  %-26s %9s %9s %9s %9s\n", "us", "p50", "p99", "p99.9", "worst");
    print_samples(out, "display event after time", &counts->tardiness);
    print_samples(out, "picture drawn after time", &counts->drawn);
}

static void print_samples_json(FILE *out, const char *name, const struct samples *samples)
{
    sort(samples);
    fprintf(out, "\"%s\":{\"count\":%zu,\"p50\":%.1f,\"p99\":%.1f,\"p99.9\":%.1f,\"worst\":%.1f}",
            name, samples->count, permille(samples, 500), permille(samples, 990),
            permille(samples, 999), permille(samples, 1000));
}

void counts_print_json(FILE *out, const struct counts *counts, bool independent)
{
    fprintf(out, "\"shown\":%lu,\"expired\":%lu,\"dropped\":%lu,\"broken\":%lu,\"kinds\":[",
            counts_sum(counts->shown), counts_sum(counts->expired), counts_sum(counts->dropped),
            counts_sum(counts->broken));
    const char *between = "";
    for (int i = 0; i < RANKS; i++) {
        if (counts->read[i] == 0)
            continue;
        fprintf(out,
                "%s{\"kind\":\"%s\",\"read\":%lu,\"shown\":%lu,\"expired\":%lu,\"dropped\":%lu,"
                "\"broken\":%lu}",
                between, rank_names[independent][i], counts->read[i], counts->shown[i],
                counts->expired[i], counts->dropped[i], counts->broken[i]);
        between = ",";
    }
    fprintf(out, "],");
    print_samples_json(out, "display_tardiness_us", &counts->tardiness);
    fprintf(out, ",");
    print_samples_json(out, "drawn_after_us", &counts->drawn);
}
