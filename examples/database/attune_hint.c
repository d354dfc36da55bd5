/* attune_hint(NAME, VALUE): a loadable function with which an SQL session tells the scheduler how
 * much what it does matters.
 *
 *     CREATE FUNCTION attune_hint RETURNS INTEGER SONAME 'attune_hint.so';
 *     SELECT attune_hint('important', 1);
 *
 * It supplies thread import NAME of the server's thread that serves this session, and returns
 * VALUE. The value holds until the session gives another one, or its thread ends. SQL's NULL
 * changes nothing. No scheduler need run: one that starts later reads the value.
 */
#include <attune.h>
#include <errno.h>
#include <mysql.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the longest name that the library takes, and a final zero. */
enum { NAME_SIZE = 256 };

my_bool attune_hint_init(UDF_INIT *call, UDF_ARGS *arguments, char *message);
long long attune_hint(UDF_INIT *call, UDF_ARGS *arguments, char *is_null, char *error);

static my_bool refuse(char *message, const char *why)
{
    snprintf(message, MYSQL_ERRMSG_SIZE, "attune_hint: %s", why);
    return 1;
}

/* The server calls this when a statement begins, in the session's thread: only here can an error
 * say why. So the name must be known here, and what is left to do for each value is a store. */
my_bool attune_hint_init(UDF_INIT *call, UDF_ARGS *arguments, char *message)
{
    if (arguments->arg_count != 2 || arguments->arg_type[0] != STRING_RESULT ||
        arguments->arg_type[1] != INT_RESULT)
        return refuse(message, "it wants the name of a thread import and a whole number");
    if (!arguments->args[0])
        return refuse(message, "the name must be a constant");
    /* A name comes without a final zero. */
    char name[NAME_SIZE] = "";
    if (arguments->lengths[0] >= sizeof name)
        return refuse(message, "the name is longer than 255 bytes");
    memcpy(name, arguments->args[0], arguments->lengths[0]);
    int64_t *value = attune_thread_import_int(ATTUNE_SELF, name);
    if (!value && errno == ENOENT)
        return refuse(message, "the scheduler has no thread import of that name");
    if (!value)
        return refuse(message, strerror(errno));
    call->ptr = (char *)value;
    call->maybe_null = 1;
    /* The server would otherwise call once for equal constants, and remember the answer. */
    call->const_item = 0;
    return 0;
}

long long attune_hint(UDF_INIT *call, UDF_ARGS *arguments, char *is_null, char *error)
{
    (void)error;
    if (!arguments->args[1]) {
        *is_null = 1;
        return 0;
    }
    long long given;
    memcpy(&given, arguments->args[1], sizeof given);
    __atomic_store_n((int64_t *)call->ptr, given, __ATOMIC_RELAXED);
    return given;
}
