"""Where an emulated host's shell gives up: real ones end for want of stack, memory or processes instead."""

from __future__ import annotations

from typing import Final

#: Scripts and programs that run each other, one within the other.
DEEPEST: Final = 40
#: Commands of one pipeline, each of which is a thread here.
LONGEST_PIPELINE: Final = 64
#: Characters in all words of one command, or in a variable (Linux: ARG_MAX is 2 MiB).
LONGEST_WORDS: Final = 2 << 20
#: Bytes that a command substitution may print.
LONGEST_OUTPUT: Final = 8 << 20
#: Processes of a host at a time.
MOST_PROCESSES: Final = 256

#: What is said where an emulated program fails by itself; the fuzzing of hosts looks for it.
BROKEN: Final = "this emulated program cannot do that"
BROKEN_STATUS: Final = 70

NESTED = "maximum nesting level exceeded"
FORK = "fork: Resource temporarily unavailable"
TOO_LONG = "Argument list too long"
#: Programs that wait for nothing but their input: what was printed before them goes out with what they print.
NEVER_WAITING = frozenset({"cat", "dmesg", "grep", "ls", "readlink", "rm", "sha256sum", "stat"})
