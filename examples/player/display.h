/* Where pictures are shown: windows of an X server, through memory that is shared with it, or
 * nowhere (for measurements).
 *
 * A picture's memory belongs to the window, and is the player's while `free` or until it is shown;
 * it comes back when the display has drawn it. Pixels are 32 bits: blue, green, red, nothing. */
#ifndef PLAYER_DISPLAY_H
#define PLAYER_DISPLAY_H

#include <stdbool.h>
#include <stdint.h>

/* Some are on their way to the screen, the others wait for their time. */
enum { PICTURES = 5 };

struct window;

struct picture {
    struct window *window;
    uint8_t *pixels;
    int stride; /* bytes a row */
    bool free;
    uint64_t presentation; /* CLOCK_MONOTONIC */
    uint32_t segment;      /* the display's own */
};

struct window {
    struct display *display;
    int width, height;
    struct picture pictures[PICTURES];
    uint32_t id;
    /* Called when a picture has been drawn and is free again. */
    void (*drawn)(void *data, const struct picture *picture);
    void *data;
};

struct display {
    /* NULL after saying why. */
    struct window *(*open_window)(struct display *display, int width, int height,
                                  const char *title);
    void (*close_window)(struct window *window);
    void (*show)(struct picture *picture);
    /* What happened: `drawn` calls are made. False: the user wants to end, or (with *lost) the
     * display has gone. */
    bool (*take_events)(struct display *display, bool *lost);
    void (*close)(struct display *display);
    int fd; /* readable when something happened; -1: never */
    /* pictures are to be handed over so much before their time; the display waits */
    uint64_t ahead;
    uint64_t tick; /* of the clock by which it waits: pictures are due at whole ticks */
};

/* ahead as above: the server holds pictures back by its own clock (SYNC extension, in
 * milliseconds). NULL after saying why. */
struct display *display_x11(uint64_t ahead);
struct display *display_null(void);

#endif
