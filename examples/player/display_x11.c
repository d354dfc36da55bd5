/* Windows of an X server. Pictures lie in System V segments that the server has attached (MIT-SHM);
 * it draws from there and says when it has. With `ahead` they are handed over before their time,
 * behind a request that makes the server wait for its own clock (the SYNC extension's SERVERTIME):
 * then the server's timer says when, and not the moment in which we get the CPU. It waits for whole
 * milliseconds from when it has read the request: one more if that was before the turn of a
 * millisecond than if it was behind it. So pictures are due, and handed over, at whole ones;
 * between two, some would be drawn a millisecond sooner than others. */
#include "display.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <time.h>
#include <xcb/shm.h>
#include <xcb/sync.h>
#include <xcb/xcb.h>

#include "say.h"

enum { WINDOWS = 64, KEY_Q_UNSHIFTED = 'q', MILLISECOND = 1000000 };

struct x11 {
    struct display display;
    xcb_connection_t *connection;
    xcb_screen_t *screen;
    const xcb_setup_t *setup;
    uint8_t drawn_event;
    xcb_sync_counter_t server_time;
    int64_t offset; /* the server's clock minus ours, ms */
    xcb_atom_t protocols, delete;
    xcb_keycode_t quit;
    xcb_gcontext_t gc;
    struct window *windows[WINDOWS];
    int next_x, next_y, row_height;
};

static int64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static xcb_atom_t atom(struct x11 *x, const char *name)
{
    xcb_intern_atom_reply_t *reply = xcb_intern_atom_reply(
        x->connection, xcb_intern_atom(x->connection, 0, (uint16_t)strlen(name), name), NULL);
    xcb_atom_t found = reply == NULL ? XCB_ATOM_NONE : reply->atom;
    free(reply);
    return found;
}

static void close_display(struct display *display)
{
    struct x11 *x = (struct x11 *)display;
    xcb_disconnect(x->connection);
    free(x);
}

static void release(struct picture *picture)
{
    if (picture->pixels != NULL)
        shmdt(picture->pixels);
}

static void close_window(struct window *window)
{
    struct x11 *x = (struct x11 *)window->display;
    for (int i = 0; i < WINDOWS; i++)
        if (x->windows[i] == window)
            x->windows[i] = NULL;
    for (int i = 0; i < PICTURES; i++) {
        if (window->pictures[i].segment != 0)
            xcb_shm_detach(x->connection, window->pictures[i].segment);
        release(&window->pictures[i]);
    }
    if (window->id != 0)
        xcb_destroy_window(x->connection, window->id);
    xcb_flush(x->connection);
    free(window);
}

/* Memory that both have; it vanishes with the last of the two. */
static bool share(struct x11 *x, struct picture *picture, size_t size)
{
    int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
    if (id < 0)
        return fail("shared memory for a picture of %zu bytes: %m", size);
    void *memory = shmat(id, NULL, 0);
    xcb_generic_error_t *refused = NULL;
    if (memory != (void *)-1) {
        picture->pixels = memset(memory, 0, size); /* now, and not in an event */
        uint32_t segment = xcb_generate_id(x->connection);
        refused = xcb_request_check(
            x->connection, xcb_shm_attach_checked(x->connection, segment, (uint32_t)id, 0));
        picture->segment = refused == NULL ? segment : 0;
    }
    shmctl(id, IPC_RMID, NULL);
    if (memory != (void *)-1 && refused == NULL && !xcb_connection_has_error(x->connection))
        return true;
    free(refused);
    return fail(
        "the X server cannot use our memory; it must run on this machine, and for this user");
}

/* Windows side by side, as long as there is room; a window manager may know better. */
static void place(struct x11 *x, const struct window *window, int *left, int *top)
{
    if (x->next_x > 0 && x->next_x + window->width > x->screen->width_in_pixels) {
        x->next_x = 0;
        x->next_y += x->row_height;
        x->row_height = 0;
    }
    *left = x->next_x;
    *top = x->next_y;
    x->next_x += window->width;
    if (window->height > x->row_height)
        x->row_height = window->height;
}

static struct window *open_window(struct display *display, int width, int height, const char *title)
{
    struct x11 *x = (struct x11 *)display;
    int slot = 0;
    while (slot < WINDOWS && x->windows[slot] != NULL)
        slot++;
    struct window *new = slot == WINDOWS ? NULL : calloc(1, sizeof *new);
    if (new == NULL) {
        fail("%s: no room for more windows", title);
        return NULL;
    }
    *new = (struct window){.display = display, .width = width, .height = height};
    x->windows[slot] = new;
    for (int i = 0; i < PICTURES; i++) {
        new->pictures[i] = (struct picture){.window = new, .stride = width * 4, .free = true};
        /* swscale writes whole vectors, so the last row needs some room behind it. */
        if (!share(x, &new->pictures[i], (size_t)width * 4 * (size_t)height + 64)) {
            close_window(new);
            return NULL;
        }
    }
    int left, top;
    place(x, new, &left, &top);
    new->id = xcb_generate_id(x->connection);
    uint32_t values[] = {x->screen->black_pixel,
                         XCB_EVENT_MASK_KEY_PRESS | XCB_EVENT_MASK_STRUCTURE_NOTIFY};
    xcb_create_window(x->connection, XCB_COPY_FROM_PARENT, new->id, x->screen->root, (int16_t)left,
                      (int16_t)top, (uint16_t)width, (uint16_t)height, 0,
                      XCB_WINDOW_CLASS_INPUT_OUTPUT, XCB_COPY_FROM_PARENT,
                      XCB_CW_BACK_PIXEL | XCB_CW_EVENT_MASK, values);
    xcb_change_property(x->connection, XCB_PROP_MODE_REPLACE, new->id, XCB_ATOM_WM_NAME,
                        XCB_ATOM_STRING, 8, (uint32_t)strlen(title), title);
    xcb_change_property(x->connection, XCB_PROP_MODE_REPLACE, new->id, x->protocols, XCB_ATOM_ATOM,
                        32, 1, &x->delete);
    xcb_map_window(x->connection, new->id);
    xcb_flush(x->connection);
    return new;
}

static void show(struct picture *picture)
{
    struct window *window = picture->window;
    struct x11 *x = (struct x11 *)window->display;
    if (x->display.ahead > 0) {
        int64_t when = (int64_t)(picture->presentation / MILLISECOND) + x->offset;
        xcb_sync_waitcondition_t condition = {
            .trigger = {.counter = x->server_time,
                        .wait_type = XCB_SYNC_VALUETYPE_ABSOLUTE,
                        .wait_value = {.hi = (int32_t)(when >> 32), .lo = (uint32_t)when},
                        .test_type = XCB_SYNC_TESTTYPE_POSITIVE_COMPARISON}};
        xcb_sync_await(x->connection, 1, &condition);
    }
    xcb_shm_put_image(x->connection, window->id, x->gc, (uint16_t)window->width,
                      (uint16_t)window->height, 0, 0, (uint16_t)window->width,
                      (uint16_t)window->height, 0, 0, x->screen->root_depth,
                      XCB_IMAGE_FORMAT_Z_PIXMAP, 1, picture->segment, 0);
    xcb_flush(x->connection);
}

static void drawn(struct x11 *x, const xcb_shm_completion_event_t *event)
{
    for (int i = 0; i < WINDOWS; i++)
        for (int j = 0; x->windows[i] != NULL && j < PICTURES; j++) {
            struct picture *picture = &x->windows[i]->pictures[j];
            if (picture->segment == event->shmseg && !picture->free) {
                picture->free = true;
                x->windows[i]->drawn(x->windows[i]->data, picture);
            }
        }
}

static bool take_events(struct display *display, bool *lost)
{
    struct x11 *x = (struct x11 *)display;
    bool goes_on = true;
    xcb_generic_event_t *event;
    while ((event = xcb_poll_for_event(x->connection)) != NULL) {
        uint8_t type = event->response_type & 0x7f;
        if (type == x->drawn_event)
            drawn(x, (const void *)event);
        else if (type == XCB_CLIENT_MESSAGE &&
                 ((const xcb_client_message_event_t *)event)->data.data32[0] == x->delete)
            goes_on = false;
        else if (type == XCB_KEY_PRESS && ((const xcb_key_press_event_t *)event)->detail == x->quit)
            goes_on = false;
        free(event);
    }
    *lost = xcb_connection_has_error(x->connection) != 0;
    return goes_on && !*lost;
}

/* The key that is labelled q. */
static xcb_keycode_t quit_key(struct x11 *x)
{
    uint8_t count = (uint8_t)(x->setup->max_keycode - x->setup->min_keycode + 1);
    xcb_get_keyboard_mapping_reply_t *map = xcb_get_keyboard_mapping_reply(
        x->connection, xcb_get_keyboard_mapping(x->connection, x->setup->min_keycode, count), NULL);
    xcb_keycode_t found = 0;
    for (int i = 0; map != NULL && i < count && found == 0; i++)
        if (xcb_get_keyboard_mapping_keysyms(map)[i * map->keysyms_per_keycode] == KEY_Q_UNSHIFTED)
            found = (xcb_keycode_t)(x->setup->min_keycode + i);
    free(map);
    return found;
}

static bool has_usual_pixels(const struct x11 *x)
{
    xcb_depth_iterator_t depth = xcb_screen_allowed_depths_iterator(x->screen);
    for (; depth.rem > 0; xcb_depth_next(&depth)) {
        xcb_visualtype_iterator_t visual = xcb_depth_visuals_iterator(depth.data);
        for (; visual.rem > 0; xcb_visualtype_next(&visual))
            if (visual.data->visual_id == x->screen->root_visual)
                return depth.data->depth >= 24 && visual.data->red_mask == 0xff0000 &&
                       visual.data->blue_mask == 0xff &&
                       x->setup->image_byte_order == XCB_IMAGE_ORDER_LSB_FIRST;
    }
    return false;
}

/* Finds the server's clock and how it differs from ours. */
static bool find_server_time(struct x11 *x)
{
    const xcb_query_extension_reply_t *extension =
        xcb_get_extension_data(x->connection, &xcb_sync_id);
    if (extension == NULL || !extension->present)
        return false;
    free(xcb_sync_initialize_reply(x->connection, xcb_sync_initialize(x->connection, 3, 1), NULL));
    xcb_sync_list_system_counters_reply_t *list = xcb_sync_list_system_counters_reply(
        x->connection, xcb_sync_list_system_counters(x->connection), NULL);
    if (list == NULL)
        return false;
    xcb_sync_systemcounter_iterator_t counter =
        xcb_sync_list_system_counters_counters_iterator(list);
    for (; counter.rem > 0; xcb_sync_systemcounter_next(&counter)) {
        /* Directly behind its length; xcb_sync_systemcounter_name counts the structure's padding,
         * too. */
        const char *name = (const char *)(&counter.data->name_len + 1);
        if (xcb_sync_systemcounter_name_length(counter.data) == 10 &&
            memcmp(name, "SERVERTIME", 10) == 0)
            x->server_time = counter.data->counter;
    }
    free(list);
    if (x->server_time == XCB_NONE)
        return false;
    int64_t before = milliseconds();
    xcb_sync_query_counter_reply_t *value = xcb_sync_query_counter_reply(
        x->connection, xcb_sync_query_counter(x->connection, x->server_time), NULL);
    if (value == NULL)
        return false;
    int64_t there = (int64_t)value->counter_value.hi << 32 | value->counter_value.lo;
    /* The same clock, read a moment later, or another one. */
    int64_t difference = there - before;
    x->offset = difference >= 0 && there <= milliseconds() ? 0 : difference;
    free(value);
    return true;
}

static struct display *refused(struct x11 *x, const char *why)
{
    const char *name = getenv("DISPLAY");
    fail("display %s: %s; --display null plays without one",
         name == NULL || *name == 0 ? "(DISPLAY is not set)" : name, why);
    close_display(&x->display);
    return NULL;
}

struct display *display_x11(uint64_t ahead)
{
    struct x11 *x = calloc(1, sizeof *x);
    if (x == NULL) {
        fail("no memory");
        return NULL;
    }
    int number = 0;
    x->connection = xcb_connect(NULL, &number);
    if (xcb_connection_has_error(x->connection))
        return refused(x, "no X server answers there");
    x->setup = xcb_get_setup(x->connection);
    xcb_screen_iterator_t screen = xcb_setup_roots_iterator(x->setup);
    for (; number > 0 && screen.rem > 1; number--)
        xcb_screen_next(&screen);
    x->screen = screen.data;
    const xcb_query_extension_reply_t *shm = xcb_get_extension_data(x->connection, &xcb_shm_id);
    if (shm == NULL || !shm->present)
        return refused(x, "the server has no MIT-SHM extension");
    if (!has_usual_pixels(x))
        return refused(x, "its pixels are not 32 bits of blue, green and red");
    if (ahead > 0 && !find_server_time(x)) {
        fail("the X server has no SYNC clock: pictures are sent at their time");
        ahead = 0;
    }
    x->drawn_event = (uint8_t)(shm->first_event + XCB_SHM_COMPLETION);
    x->protocols = atom(x, "WM_PROTOCOLS");
    x->delete = atom(x, "WM_DELETE_WINDOW");
    x->quit = quit_key(x);
    x->gc = xcb_generate_id(x->connection);
    xcb_create_gc(x->connection, x->gc, x->screen->root, 0, NULL);
    x->display = (struct display){open_window,   close_window,
                                  show,          take_events,
                                  close_display, xcb_get_file_descriptor(x->connection),
                                  ahead,         ahead > 0 ? MILLISECOND : 1};
    return &x->display;
}
