"""Programs about the machine and its processes: uname, date, id, hostname, dmesg, systemctl, ps, kill, ..."""

from __future__ import annotations

import errno
import os
import re
import time

from harness.emulator.linear_regex import LinearRegex
from harness.emulator.programs.base import Invocation, Main, ProgramExit
from harness.emulator.programs.launch import ProgramNotFound, execute, run_builtin, run_script

_LONGEST_SLEEP = 365 * 86400.0  # lab time jumps over a sleep: it is not to leave the calendar
_WEEKDAY_DATE = "%a %b %e %H:%M:%S"


def true(run: Invocation) -> int:
    """Succeed."""
    return 0


def false(run: Invocation) -> int:
    """Fail."""
    return 1


def uname(run: Invocation) -> int:
    """Write what the kernel is."""
    options, _ = run.options("amnrsvpio")
    host = run.host
    values = {
        "-s": "Linux",
        "-n": host.hostname,
        "-r": host.kernel_release,
        "-v": "#1 SMP PREEMPT_DYNAMIC StarlingX",
        "-m": "x86_64",
        "-o": "GNU/Linux",
    }
    wanted = list(values) if "-a" in options else [flag for flag in values if flag in options] or ["-s"]
    run.out(" ".join(values[flag] for flag in wanted) + "\n")
    return 0


def date(run: Invocation) -> int:
    """Write what the host takes for the time, by ``+FORMAT`` where given."""
    options, words = run.options("uRI:d:s:", ("utc", "iso-8601="))
    if "-s" in options:
        run.complain("cannot set date: Operation not permitted")
        return 1
    now = run.host.wall_clock()
    moment = time.gmtime(now)
    form = words[0][1:] if words and words[0].startswith("+") else f"{_WEEKDAY_DATE} UTC %Y"
    if "-I" in options:
        form = "%Y-%m-%d" if options["-I"] == "date" else "%Y-%m-%dT%H:%M:%S+00:00"
    form = form.replace("%s", str(int(now))).replace("%N", f"{int(now % 1 * 1e9):09d}")
    safe = form.encode("utf-8", "surrogateescape").decode("latin-1")  # strftime takes no half a character
    run.streams.stdout.write(time.strftime(safe, moment).encode("latin-1", "replace") + b"\n")
    return 0


def identity(run: Invocation) -> int:
    """Write who runs this: root, always."""
    options, _ = run.options("ugnG")
    if options.keys() & {"-u", "-g", "-G"}:
        run.out("root\n" if "-n" in options else "0\n")
    else:
        run.out("uid=0(root) gid=0(root) groups=0(root)\n")
    return 0


def whoami(run: Invocation) -> int:
    """Write the user's name."""
    run.out("root\n")
    return 0


def hostname(run: Invocation) -> int:
    """Write the host's name."""
    run.out(f"{run.host.hostname}\n")
    return 0


def env(run: Invocation) -> int:
    """Write the environment, or run a program in a changed one."""
    words = run.argv[1:]
    changed = dict(run.env)
    while words and "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        changed[name] = value
    if words:
        return _become(run, words, changed, run.quoted(words[0]))
    run.out("".join(f"{name}={value}\n" for name, value in changed.items()))
    return 0


def nohup(run: Invocation) -> int:
    """Run a program; there is no hangup to shield it from."""
    run.operands(run.argv[1:], 1)
    return _become(run, run.argv[1:], run.env, f"failed to run command {run.quoted(run.argv[1])}")


def _become(run: Invocation, words: list[str], env: dict[str, str], failure: str) -> int:
    try:
        return execute(run, words, env, replace_process=True)
    except ProgramNotFound as problem:
        run.complain(f"{failure}: {os.strerror(errno.ENOENT)}")
        return problem.status


def which(run: Invocation) -> int:
    """Write where programs are found."""
    status = 0
    for word in run.argv[1:]:
        places = [word] if "/" in word else [f"{p}/{word}" for p in run.env.get("PATH", "").split(":") if p]
        found = next((path for path in places if run.vfs.exists(path)), None)
        if found is None:
            status = 1
        else:
            run.out(f"{found}\n")
    return status


def sleep(run: Invocation) -> int:
    """Let lab time pass."""
    seconds = 0.0
    for word in run.operands(run.argv[1:], 1):
        interval = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{0,9})?|inf(?:inity)?)([smhd]?)", word)
        if interval is None:
            run.complain(f"invalid time interval {run.quoted(word)}")
            return 1
        unit = {"m": 60, "h": 3600, "d": 86400}.get(interval[2], 1)
        seconds += min(float(interval[1]) * unit, _LONGEST_SLEEP)
    with run.host.clock.actor():
        run.process.sleep(seconds)
    return 0


def uptime(run: Invocation) -> int:
    """Write for how long the host has been up."""
    run.out(f" up {int(run.host.uptime()) // 60} min,  1 user,  load average: 0.00, 0.00, 0.00\n")
    return 0


def dmesg(run: Invocation) -> int:
    """Write the kernel log; ``-T`` with wall-clock times, ``-c`` and ``-C`` clear it."""
    options, _ = run.options(
        "TtckCxHrPwSl:f:", ("color=", "ctime", "notime", "clear", "read-clear", "level=")
    )
    entries = run.host.kernel_log.entries()
    if not options.keys() & {"-C", "--clear"}:
        for moment, text in entries:
            if options.keys() & {"-t", "--notime"}:
                stamp = ""
            elif options.keys() & {"-T", "--ctime"}:
                stamp = time.strftime(
                    f"[{_WEEKDAY_DATE} %Y] ", time.gmtime(run.host.wall_clock() - run.host.uptime() + moment)
                )
            else:
                stamp = f"[{moment:12.6f}] "
            run.out(f"{stamp}{text}\n")
    if options.keys() & {"-c", "-C", "--clear", "--read-clear"}:
        run.host.kernel_log.clear()
    return 0


def systemctl(run: Invocation) -> int:
    """Ask for services, start and stop them; ``reboot`` and ``poweroff`` act on the host."""
    _, words = run.options("qal", ("no-pager", "quiet", "value", "property="), permute=True)
    action, *names = words or ["list-units"]
    services = run.host.services
    if action == "reboot":
        run.host.reboot()
        return 0
    if action == "poweroff":
        run.host.power_off()
        return 0
    if action == "list-units":
        for name, active in services.items():
            run.out(f"  {name}.service loaded {'active running' if active else 'inactive dead'} {name}\n")
        return 0
    if action == "daemon-reload":
        return 0
    status = 0
    for unit in names:
        status = max(status, _service(run, action, unit))
    return status


def _service(run: Invocation, action: str, unit: str) -> int:
    services = run.host.services
    name = unit.removesuffix(".service")
    known = name in services
    active = services.get(name, False)
    if action == "is-active":
        run.out("active\n" if active else "inactive\n")
        return 0 if active else 3
    if action == "is-enabled":
        if not known:
            run.err(f"Failed to get unit file state for {name}.service: No such file or directory\n")
            return 1
        run.out("enabled\n")
        return 0
    if action == "status":
        if not known:
            run.err(f"Unit {name}.service could not be found.\n")
            return 4
        state = "active (running)" if active else "inactive (dead)"
        run.out(f"{'●' if active else '○'} {name}.service - {name}\n")
        run.out(f"     Loaded: loaded (/lib/systemd/system/{name}.service; enabled; preset: enabled)\n")
        run.out(f"     Active: {state}\n")
        return 0 if active else 3
    if action in ("start", "stop", "restart", "try-restart"):
        if not known:
            verb = action.removeprefix("try-")
            missing = "loaded" if verb == "stop" else "found"
            run.err(f"Failed to {verb} {name}.service: Unit {name}.service not {missing}.\n")
            return 5
        services[name] = action != "stop"
        for called in run.host.on_service:
            called(name, action.removeprefix("try-"))
        return 0
    run.err(f"Unknown command verb '{action}'.\n")
    raise ProgramExit(1)


def reboot(run: Invocation) -> int:
    """Restart the host."""
    run.host.reboot()
    return 0


def pgrep(run: Invocation) -> int:
    """Write the ids of processes whose name (``-f``: command line) matches."""
    options, words = run.options("flaxnov", status=2)
    if not words:
        run.complain("no matching criteria specified")
        run.err("Try `pgrep --help' for more information.\n")
        return 2
    try:
        regex = LinearRegex(words[0], whole="-x" in options)
    except (re.error, OverflowError) as problem:
        run.complain(f"{problem}")
        return 2
    found = []
    for process in run.host.processes.all():
        if process is run.process:
            continue
        command = " ".join(process.argv)
        short = process.argv[0].rpartition("/")[2][:15]
        subject = command if "-f" in options else short
        if regex.search(subject.encode("utf-8", "surrogateescape")):
            label = f" {command}" if "-a" in options else f" {short}" if "-l" in options else ""
            found.append(f"{process.pid}{label}\n")
    if "-o" in options:
        found = found[:1]
    if "-n" in options:
        found = found[-1:]
    run.out("".join(found))
    return int(not found)


def ps(run: Invocation) -> int:
    """Write the running processes."""
    run.out(f"{'PID':>7} {'PPID':>7} CMD\n")
    for process in run.host.processes.all():
        run.out(f"{process.pid:>7} {process.parent:>7} {' '.join(process.argv)}\n")
    return 0


def shell(run: Invocation) -> int:
    """Run a script: ``-c TEXT [NAME ARGUMENTS]``, a file, or standard input."""
    words = run.argv[1:]
    name = "bash" if run.name == "bash" else "sh"
    while words and re.fullmatch(r"-[leu]+", words[0]):
        words.pop(0)
    if words and words[0].startswith("-") and words[0].endswith("c") and len(words) > 1:
        return run_script(run, words[1], name, tuple(words[3:]), words[2] if len(words) > 2 else "")
    if words:
        try:
            text = run.vfs.read(run.path(words[0])).decode("utf-8", "replace")
        except OSError:
            run.complain(f"0: cannot open {words[0]}: No such file")
            return 2
        return run_script(run, text, name, tuple(words[1:]), words[0])
    return run_script(run, run.streams.stdin.read().decode("utf-8", "replace"), name, ())


PROGRAMS: dict[str, Main] = {
    "true": true,
    "false": false,
    "uname": uname,
    "date": date,
    "id": identity,
    "whoami": whoami,
    "hostname": hostname,
    "env": env,
    "nohup": nohup,
    "which": which,
    "sleep": sleep,
    "uptime": uptime,
    "dmesg": dmesg,
    "systemctl": systemctl,
    "reboot": reboot,
    "pgrep": pgrep,
    "ps": ps,
    "echo": run_builtin,
    "printf": run_builtin,
    "test": run_builtin,
    "[": run_builtin,
    "kill": run_builtin,
    "pwd": run_builtin,
    "sh": shell,
    "bash": shell,
}
