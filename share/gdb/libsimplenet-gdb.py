"""Support for libsimplenet in GDB: `source libsimplenet-gdb.py`.

  simplenet tasks     lists every task of every loop: what it waits for, and where
  info pretty-printer lists the printers for task, join_handle, event_loop and std::expected

The script only reads memory, so it works on a core file too. The program needs debug information.
"""

import gdb
import gdb.printing

FRAME_PROMISE_OFFSET = 16  # after the pointers of the resume and destroy functions
ABI = "simplenet::v0::"  # as in scripts/lint/namespace.py


def lookup(name):
    try:
        return gdb.lookup_type(name)
    except gdb.error:
        return None


def short(name):
    for prefix in (ABI + "runtime::", ABI + "detail::", ABI, "simplenet::"):
        name = name.replace(prefix, "")
    return name


def address_of(handle):
    """The frame behind a std::coroutine_handle of libstdc++ or libc++, or a coroutine_slot."""
    for field in handle.type.strip_typedefs().fields():
        if field.name in ("_M_fr_ptr", "__handle_", "address_"):
            return int(handle[field.name])
    return 0


def promise_of(frame):
    return gdb.Value(frame + FRAME_PROMISE_OFFSET).cast(
        gdb.lookup_type(ABI + "detail::promise_base").pointer()).dereference()


def site_of(promise):
    where = promise["where_"]
    implementation = where[where.type.strip_typedefs().fields()[0].name]
    if int(implementation) == 0:
        return "an unknown place"
    value = implementation.dereference()
    return "%s:%d" % (value["_M_file_name"].string(), int(value["_M_line"]))


def elements(head, node_type):
    """The nodes of an intrusive list, given its sentinel."""
    first = head["next_"]
    at = first
    while int(at) != int(head.address):
        yield at.cast(node_type.pointer()).dereference()
        at = at.dereference()["next_"]


def most_derived(value):
    return value.address.cast(value.dynamic_type.pointer()).dereference()


def loops():
    """(thread, loop) for each running loop."""
    found = []
    selected = gdb.selected_thread()
    loop_type = lookup(ABI + "detail::loop")
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        loop = loop_of_thread(loop_type)
        if loop is not None:
            found.append((thread, loop))
    if selected is not None:
        selected.switch()
    return found


def loop_of_thread(loop_type):
    try:
        current = gdb.parse_and_eval(ABI + "detail::run_queue::current_")
        if int(current) == 0:
            return None
        return current.cast(loop_type.pointer()).dereference()
    except gdb.error:
        pass  # no thread-local variables here, as in some core files: look at the stack
    frame = gdb.newest_frame()
    while frame is not None:
        name = frame.name() or ""
        if name.startswith(ABI + "detail::loop::"):
            try:
                return frame.read_var("this").dereference()
            except (gdb.error, ValueError):
                pass
        frame = frame.older()
    return None


def innermost_suspension(scope):
    """The suspension for which a chain waits, in the innermost of its scopes."""
    found = None
    while int(scope["current"]) != 0:
        found = most_derived(scope["current"].dereference())
        if not derives_from(found.type.strip_typedefs(), ABI + "detail::scope_entry"):
            break
        scope = found["inner_"]
    return found


def derives_from(kind, name):
    if kind.name is not None and kind.name == name:
        return True
    return kind.code == gdb.TYPE_CODE_STRUCT and any(
        derives_from(field.type.strip_typedefs(), name)
        for field in kind.fields() if field.is_base_class)


def describe(suspension):
    kind = suspension.type.unqualified().strip_typedefs()
    text = short(kind.name)
    if derives_from(kind, ABI + "detail::operation"):
        record = suspension["record"]
        if int(record) != 0:
            text += " on fd %d" % int(record.dereference()["fd"])
    return text


class Tasks(gdb.Command):
    """Lists the tasks of every event loop of the program: simplenet tasks"""

    def __init__(self):
        super().__init__("simplenet tasks", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        if lookup(ABI + "detail::loop") is None:
            raise gdb.GdbError("no debug information of libsimplenet in this program")
        every = loops()
        if not every:
            print("no event loop runs")
        for thread, loop in every:
            print("loop of thread %d (%s), %d tasks:" % (
                thread.num, loop.address, int(loop["live_chains_"]["value_"])))
            self.print_chains(loop)

    @staticmethod
    def print_chains(loop):
        chain_type = gdb.lookup_type(ABI + "detail::chain")
        for chain in elements(loop["chains_"]["head_"], chain_type):
            if bool(chain["over"]):
                continue
            name = unique_pointer(chain["name"])
            title = "#%d" % int(chain["number"])
            if name is not None:
                title += " " + name.string()
            waits = innermost_suspension(chain["inner"])
            if waits is None:
                print("%s: runs, or is ready" % title)
                continue
            print("%s: %s" % (title, describe(waits)))
            frame = address_of(waits["caller_"])
            while frame != 0:
                promise = promise_of(frame)
                if not bool(promise["stands_in_"]):
                    print("    at " + site_of(promise))
                frame = address_of(promise["continuation_"])


def unique_pointer(value):
    """The pointer in a std::unique_ptr, found by its type; None if it is null."""
    pending = [value]
    while pending:
        at = pending.pop()
        kind = at.type.strip_typedefs()
        if kind.code == gdb.TYPE_CODE_PTR:
            return at if int(at) != 0 else None
        if kind.code == gdb.TYPE_CODE_STRUCT:
            pending += [at[field] for field in kind.fields()]
    return None


class TaskPrinter:
    """task<T>: a lazy coroutine that was not yet awaited, or an empty task."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        frame = address_of(self.value["frame_"])
        if frame == 0:
            return "task: awaited, or moved from"
        resume = gdb.Value(frame).cast(gdb.lookup_type("long").pointer()).dereference()
        block = gdb.block_for_pc(int(resume))
        while block is not None and block.function is None:
            block = block.superblock
        name = block.function.print_name if block is not None else hex(int(resume))
        return "task of %s, not started" % name


class JoinHandlePrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        root = self.value["root_"]
        if int(root) == 0:
            return "join_handle: empty"
        return "join_handle of #%d%s" % (int(root.dereference()["number"]),
                                         ", done" if bool(root.dereference()["over"]) else "")


class LoopPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        loop = unique_pointer(self.value["inner_"])
        if loop is None:
            return "event_loop: moved from"
        return "event_loop with %d tasks" % int(loop.dereference()["live_chains_"]["value_"])


class ExpectedPrinter:
    """std::expected, and so simplenet::result."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        return "value" if bool(self.value["_M_has_value"]) else "error"

    def children(self):
        if not bool(self.value["_M_has_value"]):
            yield "code", self.value["_M_unex"]
            return
        try:
            yield "value", self.value["_M_val"]  # GDB looks into the anonymous union
        except gdb.error:
            return  # of an expected<void>


def register():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("libsimplenet")
    printers.add_printer("task", f"^{ABI}runtime::task<.*>$", TaskPrinter)
    printers.add_printer("join_handle", f"^{ABI}runtime::join_handle<.*>$",
                         JoinHandlePrinter)
    printers.add_printer("event_loop", f"^{ABI}runtime::event_loop$", LoopPrinter)
    printers.add_printer("expected", r"^std::expected<.*>$", ExpectedPrinter)
    gdb.printing.register_pretty_printer(gdb.current_objfile(), printers, replace=True)
    gdb.Command("simplenet", gdb.COMMAND_STACK, gdb.COMPLETE_NONE, True)
    Tasks()


register()
