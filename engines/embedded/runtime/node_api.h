/* ---- A node of a cluster: bytes to and from its gateway, `attune gateway` ---- */

/* Both copy bytes and return at once; what is lost or garbled on the way is said again. Call both
 * from one thread, again and again. */

/* Bytes that have come, in pieces of any size. Handlers see new values from their next call on. */
void attune_node_hear(const void *bytes, size_t count);

/* Writes what there is to say and returns how many bytes that is; 0: nothing now. `room` is
 * ATTUNE_NODE_ROOM at least. */
size_t attune_node_say(void *bytes, size_t room);
