"""The program inside the sandbox: runs the program under test once per case, each time in a fresh process.

Run by path, without the project's modules. It forks instead of starting Python again, which is most of the cost of a
short case. It knows inputs and limits, never what output is expected: whatever the tested program does to this one, it
learns nothing and can only change its own output.
"""

import atexit
import gc
import os
import resource
import signal
import sys
import time

READY = b"R"
FOLDERS = ("/tmp", "/dev/shm")  # noqa: S108  of the sandbox, both tmpfs
SECOND = 2  # bubblewrap is the first process of the namespace
UNFLUSHED = 120  # Python's exit status then
FILES = 64  # open at once
_COMMANDS, _REPLIES = 0, 1
_BYTES = 8  # of a number


def main() -> None:
    """Receive the program, then (standard input, call) after (standard input, call); the arguments are the limits."""
    if os.getpid() != SECOND:
        sys.exit("this program kills all other processes: it runs in a sandbox only, see sandbox.py")
    uid, memory, processes, cpu_s, file_bytes = map(int, sys.argv[1:])
    _confine(uid, memory, processes)
    os.write(_REPLIES, READY)
    program = _receive()
    gc.freeze()  # so that a collection in a child copies no page of this process
    while True:
        given, call = _receive(), _receive()
        for folder in FOLDERS:
            _empty(folder)
        files = [os.memfd_create("file") for _ in range(3)]
        _write(files[0], given)
        os.lseek(files[0], 0, os.SEEK_SET)
        child = os.fork()
        if not child:
            _become(files, cpu_s, file_bytes)
            _end(_status_of(program, call))
            return  # if the program has taken the ways to end away
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        _end_the_rest()
        _reply(status, *map(_content, files[1:]))


def canonical(value: object) -> str:
    """A value as text, equal for values that Python calls equal: 1 is 1.0 and True, sets and dicts have no order."""
    if isinstance(value, (bool, int, float)) and value % 1 == 0:
        return str(int(value))
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{canonical(key)}: {canonical(item)}" for key, item in value.items())) + "}"
    if isinstance(value, (set, frozenset)):
        return "set(" + ", ".join(sorted(map(canonical, value))) + ")"
    if isinstance(value, (list, tuple)):
        left, right = "[]" if isinstance(value, list) else "()"
        return left + ", ".join(map(canonical, value)) + right
    return repr(value)


def _confine(uid: int, memory: int, processes: int) -> None:
    """Leave root for a user id of this sandbox's own, and set the limits that all processes share.

    The kernel does not limit root's processes, not even inside a user namespace.
    """
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # if the machine runs out of memory, these processes go first
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    for kind, limit in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_NPROC, processes),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))


def _become(files: list[int], cpu_s: int, file_bytes: int) -> None:
    """Give this process its own standard streams, and no other."""
    for target, file in enumerate(files):
        os.dup2(file, target)
    os.closerange(3, FILES)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))


def _status_of(program: bytes, call: bytes) -> int:
    """Run to the end, as Python does: an error is shown, `sys.exit` gives the exit status."""
    try:
        _execute(program, call)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _end(status: int) -> None:
    """Wait for threads, run exit handlers, flush; Python's own end also frees each object, which takes far longer."""
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        status = UNFLUSHED
    os._exit(status & 0xFF)


def _execute(program: bytes, call: bytes) -> None:
    """What `python main.py` would do; then the value of the call as the last line of the output."""
    import builtins

    module = type(sys)("__main__")
    sys.modules["__main__"], sys.argv = module, ["main.py"]
    vars(builtins).update(exit=sys.exit, quit=sys.exit)  # the site module, which is not loaded, defines them
    exec(compile(program, "main.py", "exec"), module.__dict__)  # noqa: S102
    if call:
        value = eval(call, module.__dict__)  # noqa: S307
        print(f"\n{canonical(value)}")


def _end_the_rest() -> None:
    """Kill whatever the case left running: all processes but this one and the namespace's first, which buries them."""
    try:
        while True:
            os.kill(-1, signal.SIGKILL)
            time.sleep(0.0005)
    except ProcessLookupError:
        return  # none is left


def _empty(folder: str) -> None:
    for path, folders, files in os.walk(folder, topdown=False):
        for name in files:
            os.unlink(f"{path}/{name}")
        for name in folders:
            full = f"{path}/{name}"
            (os.unlink if os.path.islink(full) else os.rmdir)(full)


def _content(file: int) -> bytes:
    size = os.fstat(file).st_size
    content = os.pread(file, size, 0)
    os.close(file)
    return content


def _receive() -> bytes:
    return _read(int.from_bytes(_read(_BYTES), "big"))


def _read(count: int) -> bytes:
    parts = []
    while count:
        part = os.read(_COMMANDS, min(count, 1 << 20))
        if not part:
            os._exit(0)  # nobody asks any more
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _reply(status: int, output: bytes, errors: bytes) -> None:
    errors = errors[-2000:]
    numbers = (status, len(output), len(errors))
    _write(_REPLIES, b"".join(number.to_bytes(_BYTES, "big", signed=True) for number in numbers) + output + errors)


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


if __name__ == "__main__":
    main()
