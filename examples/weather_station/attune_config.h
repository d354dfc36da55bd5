/* The configuration of the weather station. */
#include <stdint.h>

/* Degrees Fahrenheit; the station's own variable is the policy's import. */
extern int16_t temperature;
#define ATTUNE_IMPORT_temperature temperature

/* From here on the display is needed. */
#define ATTUNE_TUNE_hot 100

#define ATTUNE_THREADS 5
