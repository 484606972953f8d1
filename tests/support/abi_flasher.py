"""A flashing tool for the kernel's firmware-upload interface, as its ABI document describes that.

Written from Documentation/ABI/testing/sysfs-class-firmware and sysfs-bus-pci of the kernel alone; it imports
nothing but Python's own modules, so that nothing of the emulator can agree with itself.

    flasher flash FILE ADDRESS      write a file to the card and wait until the update is over
    flasher reset ADDRESS           reboot the card's BMC and wait until the card is there again

The result is one JSON object on standard output; the exit code is 0 for an update without an error.
"""

import errno
import fcntl
import json
import os
import sys
import time
from pathlib import Path

DEADLINE = 30.0


def matches(pattern):
    return [str(path) for path in Path("/").glob(pattern.lstrip("/"))]


def one(pattern):
    found = matches(pattern)
    if len(found) != 1:
        sys.exit(f"flasher: {len(found)} files match {pattern}")
    return found[0]


def read(path):
    return Path(path).read_text().strip()


def write(path, data):
    """Write all of data; a kernel attribute may take less of one write than it is given."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def until(condition, what):
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"flasher: waited in vain for {what}")
        time.sleep(0.001)


def secure_update(address):
    """Return the device of the card's secure update."""
    return one(
        f"/sys/bus/pci/devices/{address}/fpga_region/region*/dfl-fme.*/dfl_dev.*/*spi*/spi_master/spi*/spi*.*/*-sec*.auto"
    )


def flash(file, address):
    data = Path(file).read_bytes()
    device = secure_update(address)
    upload = one(f"{device}/firmware/*")
    management = one(f"/sys/bus/pci/devices/{address}/fpga_region/region*/dfl-fme.*")
    with Path("/dev", Path(management).name).open("r+b") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        until(lambda: read(f"{upload}/status") == "idle", "an idle card")
        before = read(f"{device}/security/flash_count")
        write(f"{upload}/loading", b"1")
        write(f"{upload}/data", data)
        write(f"{upload}/loading", b"0")
        seen = []

        def is_over():
            status = read(f"{upload}/status")
            if status not in seen:
                seen.append(status)
            return status == "idle"

        until(is_over, "the end of the update")
        error = read(f"{upload}/error")
    print(
        json.dumps(
            {
                "error": error,
                "seen": seen,
                "remaining": int(read(f"{upload}/remaining_size")),
                "counted": int(read(f"{device}/security/flash_count")) - int(before),
                "root": read(f"{device}/security/sr_root_entry_hash"),
                "cancelled": read(f"{device}/security/sr_canceled_csks"),
            }
        )
    )
    return 1 if error else 0


def cards():
    """Return the addresses of the cards on the bus."""
    found = []
    for path in matches("/sys/bus/pci/devices/*"):
        try:
            if (read(f"{path}/vendor"), read(f"{path}/device")) == ("0x8086", "0x0b30"):
                found.append(Path(path).name)
        except OSError as problem:
            if problem.errno not in (errno.ENOENT, errno.ENODEV):
                raise
    return sorted(found)


def reset(address):
    others = set(cards()) - {address}
    write(f"{secure_update(address)}/control/image_load", b"bmc_user")
    until(lambda: set(cards()) - others, "the card to come back")
    (now,) = set(cards()) - others
    until(
        lambda: matches(f"/sys/bus/pci/devices/{now}/fpga_region/region*/dfl-fme.*/bitstream_id"),
        "its driver",
    )
    running = read(one(f"/sys/bus/pci/devices/{now}/fpga_region/region*/dfl-fme.*/bitstream_id"))
    print(json.dumps({"address": now, "bitstream_id": running}))
    return 0


if __name__ == "__main__":
    sys.exit({"flash": flash, "reset": reset}[sys.argv[1]](*sys.argv[2:]))
