/* The display that is none: pictures are made in memory and thrown away when they would be shown.
 */
#include "display.h"

#include <stdlib.h>
#include <string.h>

#include "say.h"

static void close_window(struct window *window)
{
    for (int i = 0; i < PICTURES; i++)
        free(window->pictures[i].pixels);
    free(window);
}

static struct window *open_window(struct display *display, int width, int height, const char *title)
{
    struct window *new = calloc(1, sizeof *new);
    bool memory = new != NULL;
    for (int i = 0; memory && i < PICTURES; i++) {
        /* swscale writes whole vectors. */
        struct picture picture = {
            .window = new, .stride = (width * 4 + 63) / 64 * 64, .free = true};
        picture.pixels = aligned_alloc(64, (size_t)picture.stride * (size_t)(height + 1));
        memory = picture.pixels != NULL;
        if (memory)
            /* now, and not in an event */
            memset(picture.pixels, 0, (size_t)picture.stride * (size_t)height);
        new->pictures[i] = picture;
    }
    if (!memory) {
        fail("%s: no memory for its pictures", title);
        if (new != NULL)
            close_window(new);
        return NULL;
    }
    new->display = display;
    new->width = width;
    new->height = height;
    return new;
}

static void show(struct picture *picture)
{
    picture->free = true;
    picture->window->drawn(picture->window->data, picture);
}

static bool take_events(struct display *display, bool *lost)
{
    (void)display;
    *lost = false;
    return true;
}

static void close_nothing(struct display *display)
{
    (void)display;
}

struct display *display_null(void)
{
    static struct display nowhere = {open_window,   close_window, show, take_events,
                                     close_nothing, -1,           0,    1};
    return &nowhere;
}
