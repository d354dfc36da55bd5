/* Semaphores, and queues of messages made of two of them.
 *
 * Invariant: outside of attune_hear and of an interrupt's give, a thread waits only for a semaphore
 * whose count is 0; a give to a waiting thread never raises the count.
 */

void attune_semaphore_init(struct attune_semaphore *semaphore, uint32_t count)
{
    *semaphore = (struct attune_semaphore){.count = count, .registered = attune_semaphores};
    attune_semaphores = semaphore;
}

int attune_take(struct attune_semaphore *semaphore, uint32_t ticks)
{
    struct thread *me = attune_running;
    uint32_t before = attune_mask();
    if (semaphore->count && !semaphore->first) {
        semaphore->count--;
        attune_unmask(before);
        return 1;
    }
    attune_unmask(before);
    if (!ticks)
        return 0;
    attune_begin_stop();
    me->attune_own.waits_for = semaphore;
    me->attune_own.waits_behind = NULL;
    if (semaphore->last)
        ATTUNE_RECORD(semaphore->last)->attune_own.waits_behind = me;
    else
        semaphore->first = &me->attune;
    semaphore->last = &me->attune;
    /* An interrupt may have given since: then the search finds the caller. */
    before = attune_mask();
    if (semaphore->count)
        attune_raised = attune_given = 1;
    attune_unmask(before);
    if (ticks != ATTUNE_FOREVER)
        attune_wake_timer_set(me, (int64_t)(attune_clock + ticks));
    attune_block();
    return !me->attune_own.timed_out;
}

void attune_give(struct attune_semaphore *semaphore)
{
    uint32_t before;
    if (semaphore->first) {
        struct thread *t = ATTUNE_RECORD(semaphore->first);
        attune_forsake(t);
        attune_read_clock();
        attune_wake(t);
        return;
    }
    before = attune_mask();
    semaphore->count++;
    attune_unmask(before);
}

void attune_give_from_interrupt(struct attune_semaphore *semaphore)
{
    uint32_t before = attune_mask();
    semaphore->count++;
    attune_raised = attune_given = 1;
    attune_unmask(before);
}

void attune_queue_init(struct attune_queue *queue, void *room, uint32_t size, uint32_t capacity)
{
    queue->room = room;
    queue->size = size;
    queue->capacity = capacity;
    queue->head = queue->tail = 0;
    attune_semaphore_init(&queue->filled, 0);
    attune_semaphore_init(&queue->free, capacity);
}

/* The next place of the ring. */
static uint32_t attune_behind(const struct attune_queue *queue, uint32_t place)
{
    return place + 1 == queue->capacity ? 0 : place + 1;
}

int attune_send(struct attune_queue *queue, const void *message, uint32_t ticks)
{
    if (!attune_take(&queue->free, ticks))
        return 0;
    memcpy(queue->room + queue->size * queue->tail, message, queue->size);
    queue->tail = attune_behind(queue, queue->tail);
    attune_give(&queue->filled);
    return 1;
}

int attune_receive(struct attune_queue *queue, void *message, uint32_t ticks)
{
    if (!attune_take(&queue->filled, ticks))
        return 0;
    memcpy(message, queue->room + queue->size * queue->head, queue->size);
    queue->head = attune_behind(queue, queue->head);
    attune_give(&queue->free);
    return 1;
}
