"""User threads of Attune for GDB: in a running program, and in a core file.

    (gdb) source engines/threads/gdb/attune.py
    (gdb) attune threads        number, name, state, container of the policy, times
    (gdb) attune bt N           a backtrace of thread N; `attune bt all` of each
    (gdb) attune thread N       GDB's own commands see the frames of thread N: bt, up, info locals;
                                without N they see the program's again, as when it runs on

It reads memory and calls nothing in the program. docs/threads.md is the manual.

The library's `attune_debugger` (engines/threads/src/debugger.rs) says where things lie. A thread
that has left has saved its registers on its stack; an unwinder gives them to GDB as those of the
caller of frame 0, so that frame 0 is where the operating system's thread is, and the thread's own
frames begin at 1.
"""

import struct

import gdb
from gdb.unwinder import Unwinder, register_unwinder

VERSION = 4
FIELDS = ("view", "id", "at", "state", "suspended", "waits_for", "sp", "times", "chosen", "name",
          "stack", "container", "containers", "container_count")
# What lies on the stack of a thread that has left (engines/threads/src/stack_switch.rs).
SAVED = ("r15", "r14", "r13", "r12", "rbx", "rbp", "rip")
STATES = ("ready", "running", "waiting", "ended")
WAITS_FOR = ("waiting", "sleeping", "waiting for the end of a thread", "waiting for a mutex",
             "waiting for a condition", "waiting for a semaphore", "waiting for a descriptor",
             "waiting for a worker", "waiting for an answer", "waiting for a file",
             "waiting for a call that blocks")
NAME_SIZE = 32


def read(address, form):
    """Values at an address, as struct.unpack reads them."""
    memory = gdb.selected_inferior().read_memory(address, struct.calcsize(form))
    return struct.unpack(form, bytes(memory))


def text(address):
    """The string at an address."""
    return gdb.Value(address).cast(gdb.lookup_type("char").pointer()).string(errors="replace")


def word(address):
    return read(address, "<Q")[0]


class Engines:
    """What the library says of itself; an error where there is none."""

    def __init__(self):
        try:
            self.at = int(gdb.parse_and_eval("&attune_debugger"))
        except gdb.error:
            raise gdb.GdbError("this program has no threads of Attune: there is no symbol "
                               "`attune_debugger`")
        version, *places = read(self.at, f"<{1 + len(FIELDS)}I")
        if version != VERSION:
            raise gdb.GdbError(f"this script is of version {VERSION}, the library of {version}: "
                               "take the script that came with the library")
        self.places = dict(zip(FIELDS, places))
        # Two words behind an odd number of half ones.
        self.count, self.first = read((self.at + 4 * (1 + len(FIELDS)) + 7) & ~7, "<QQ")
        if self.count == 0:
            raise gdb.GdbError("the program has not called the library yet")

    def workers(self):
        for index in range(self.count):
            yield Worker(self, index, word(self.first + 8 * index))

    def threads(self):
        """All threads, by number."""
        workers = list(self.workers())
        blocks = [block for worker in workers for block in worker.blocks()]
        threads = [Thread(workers[word(block + self.places["at"])], block) for block in blocks]
        return sorted(threads, key=lambda thread: thread.id)

    def thread(self, number):
        for thread in self.threads():
            if thread.id == number:
                return thread
        raise gdb.GdbError(f"there is no thread {number}; `attune threads` lists them")


class Worker:
    def __init__(self, engines, index, at):
        self.places, self.index = engines.places, index
        view = read(at + self.places["view"], "<i4xQQQQQ")
        (self.os_thread, self.slots, self.slot_count, self.scheduler, self.instance,
         self.sp) = view

    def blocks(self):
        """The blocks of the threads that were created here; `at` says which worker has each."""
        return filter(None, read(self.slots, f"<{self.slot_count}Q"))

    def gdb_thread(self):
        """GDB's thread that this worker is."""
        for thread in gdb.selected_inferior().threads():
            if self.os_thread in thread.ptid[1:]:
                return thread
        raise gdb.GdbError(f"worker {self.index + 1} is no thread that GDB knows")

    def container(self, address):
        """`ready`, `waiting[3]`, as the policy calls it."""
        if address == 0:
            return "none"
        containers = word(self.scheduler + self.places["containers"])
        count, = read(self.scheduler + self.places["container_count"], "<I")
        for index in range(count):
            name, offset, length, stride = read(containers + 24 * index, "<QQII")
            place, rest = divmod(address - self.instance - offset, max(stride, 1))
            if length == 0 and address == self.instance + offset:
                return text(name)
            if rest == 0 and 0 <= place < length:
                return f"{text(name)}[{place}]"
        return "a local one"


class Thread:
    def __init__(self, worker, at):
        places = worker.places
        self.worker = worker
        self.id = word(at + places["id"])
        self.name = bytes(gdb.selected_inferior().read_memory(at + places["name"], NAME_SIZE))
        self.name = self.name.split(b"\0")[0].decode(errors="replace")
        self.code, = read(at + places["state"], "<B")
        self.suspended, = read(at + places["suspended"], "<?")
        self.waits_for, = read(at + places["waits_for"], "<B")
        self.container = worker.container(word(at + places["container"]))
        # The main program goes on where its worker's loop does.
        self.sp = word(at + places["sp"]) or worker.sp
        self.ran, self.ready, self.since = read(at + places["times"], "<qqq")
        self.chosen = word(at + places["chosen"])
        self.limit, self.base = read(at + places["stack"], "<QQ")

    @property
    def left(self):
        """The registers with which it goes on."""
        saved = read(self.sp, f"<{len(SAVED)}Q")
        return dict(zip(SAVED, saved), rsp=self.sp + 8 * len(SAVED))

    @property
    def times(self):
        """How long it has run and has been ready, in seconds."""
        if self.since == 0:
            return ["-", "-"]
        return [f"{time / 1e9:.6f}" for time in (self.ran, self.ready)]

    @property
    def state(self):
        state = STATES[self.code]
        if state == "waiting":
            state = WAITS_FOR[self.waits_for]
        return state + (", suspended" if self.suspended else "")

    def on_stack(self, address):
        """Whether it lies on the thread's stack; the main program's has no bounds."""
        return self.base == 0 or self.limit <= address < self.base

    def has_processor(self):
        """Whether its frames are those of its worker's operating-system thread."""
        if STATES[self.code] != "running":
            return False
        with selected(self.worker.gdb_thread()):
            return self.on_stack(int(gdb.newest_frame().read_register("rsp")))


class selected:
    """As a context: another of GDB's threads."""

    def __init__(self, thread):
        self.thread = thread

    def __enter__(self):
        self.before, self.frame = gdb.selected_thread(), gdb.selected_frame().level()
        self.thread.switch()

    def __exit__(self, *_):
        self.before.switch()
        gdb.execute(f"frame {self.frame}", to_string=True)


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Elsewhere(Unwinder):
    """While a user thread is looked at, the caller of frame 0 is that thread."""

    def __init__(self):
        super().__init__("attune")
        self.left = None
        self.asked = None

    def look_at(self, left):
        """`left`: registers; None: nothing but the program's own frames."""
        self.left = self.asked = None
        gdb.invalidate_cached_frames()
        if left is not None:
            frame = gdb.newest_frame()
            self.asked = int(frame.read_register("rsp")), frame.pc()
            self.left = left
            gdb.invalidate_cached_frames()

    def __call__(self, frame):
        if self.left is None:
            return None
        sp, pc = frame.read_register("rsp"), frame.read_register("rip")
        if (int(sp), int(pc)) != self.asked:
            return None
        # The frame's own place would be above its caller's, which GDB takes for a broken stack.
        unwound = frame.create_unwind_info(FrameId(gdb.Value(self.left["rsp"]), pc))
        for name, value in self.left.items():
            kind = frame.read_register(name).type
            unwound.add_saved_register(name, gdb.Value(value).cast(kind))
        return unwound


elsewhere = Elsewhere()
register_unwinder(None, elsewhere, replace=True)


def frames(thread, first):
    """GDB's lines for the frames of the thread, its worker's thread being selected."""
    frame, end = gdb.newest_frame(), 0
    while frame is not None and (end < first or not is_below(thread, frame)):
        frame, end = frame.older(), end + 1
    level = -1
    for line in gdb.execute(f"backtrace {end}", to_string=True).splitlines():
        if line.startswith("#"):
            level, line = level + 1, line.split(None, 1)[1]
            line = f"#{level - first:<3}{line}"
        if first <= level < end:
            yield line


def is_below(thread, frame):
    """Whether the frame is the library's that called the thread's first function, or another
    stack's."""
    file = frame.find_sal().symtab
    return (file is not None and file.filename.endswith("threads/src/fiber.rs")) or \
        not thread.on_stack(int(frame.read_register("rsp")))


def title(thread):
    return f'thread {thread.id} "{thread.name}" ({thread.state}), in {thread.container}'


def backtrace(thread):
    print(title(thread))
    if thread.code == STATES.index("ended"):
        return
    running = thread.has_processor()
    if not running and thread.chosen == 0:
        print("    it has not run yet")
        return
    with selected(thread.worker.gdb_thread()):
        elsewhere.look_at(None if running else thread.left)
        try:
            for line in frames(thread, 0 if running else 1):
                print(line)
        finally:
            elsewhere.look_at(None)


def number(argument):
    try:
        return int(argument)
    except ValueError:
        raise gdb.GdbError(f"`{argument}` is no number of a thread; `attune threads` lists them")


class Attune(gdb.Command):
    """User threads of Attune: `attune threads`, `attune bt`, `attune thread`."""

    def __init__(self):
        super().__init__("attune", gdb.COMMAND_STACK, prefix=True)


class Threads(gdb.Command):
    """attune threads: the program's user threads.

RUN and READY are the times until the last switch, in seconds; `-` where nobody needs the time of
each switch (docs/threads.md), so that it is not counted."""

    def __init__(self):
        super().__init__("attune threads", gdb.COMMAND_STACK)

    def invoke(self, argument, _):
        head = ("NUMBER", "NAME", "WORKER", "STATE", "CONTAINER", "RUN/s", "READY/s", "CHOSEN")
        rows = [head] + [(str(it.id), it.name, str(it.worker.index + 1), it.state, it.container,
                          *it.times, str(it.chosen))
                         for it in Engines().threads()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        for row in rows:
            cells = (cell.rjust(width) if column in (0, 2, 5, 6, 7) else cell.ljust(width)
                     for column, (cell, width) in enumerate(zip(row, widths)))
            print("  ".join(cells).rstrip())


class Backtrace(gdb.Command):
    """attune bt N|all: a backtrace of user thread N, or of each that has not ended."""

    def __init__(self):
        super().__init__("attune bt", gdb.COMMAND_STACK)

    def invoke(self, argument, _):
        if argument != "all":
            backtrace(Engines().thread(number(argument)))
            return
        for thread in Engines().threads():
            if thread.code != STATES.index("ended"):
                backtrace(thread)
                print()


class Look(gdb.Command):
    """attune thread N: GDB's commands see the frames of user thread N, which begin at frame 1.

Without N, and when the program runs on, they see the program's own again."""

    def __init__(self):
        super().__init__("attune thread", gdb.COMMAND_STACK)

    def invoke(self, argument, _):
        if not argument:
            elsewhere.look_at(None)
            return
        thread = Engines().thread(number(argument))
        running = thread.has_processor()
        if not running and thread.chosen == 0:
            raise gdb.GdbError(f"thread {thread.id} has no frames: it has not run yet")
        thread.worker.gdb_thread().switch()
        elsewhere.look_at(None if running else thread.left)
        gdb.execute(f"frame {0 if running else 1}")


Attune(), Threads(), Backtrace(), Look()
gdb.events.cont.connect(lambda _: elsewhere.look_at(None))
