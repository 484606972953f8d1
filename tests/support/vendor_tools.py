"""The vendor's tools as far as a flash and a reset need them, on the kernel's interface alone.

Called with `fpgasupdate -y --log-level debug FILE ADDRESS` or `rsu bmcimg ADDRESS`. What they print, when,
and how they exit is as of OPAE's tools (`update_fw_sysfs` of opae-sdk's fpgasupdate, without its progress
bars); what they do is done by abi_flasher's means, which have nothing of the emulator.
"""

import contextlib
import errno
import fcntl
import io
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import abi_flasher


class Ended(Exception):
    """The driver has an error: the tool says it and ends."""


def log(level, text):
    stamp = time.strftime("%Y-%m-%d %H:%M:%S.00")
    print(f"[{stamp}] [{level:8}] {text}", flush=True)


def fpgasupdate(file, address):
    data = Path(file).read_bytes()
    if len(data) < 1152 or data[:4] != bytes.fromhex("19fdeab6"):
        log("ERROR", f"Unknown file format in {file}")
        return 1
    log("WARNING", "Update starting. Please do not interrupt.")
    upload = abi_flasher.one(f"{abi_flasher.secure_update(address)}/firmware/*")
    management = abi_flasher.one(f"/sys/bus/pci/devices/{address}/fpga_region/region*/dfl-fme.*")
    with Path("/dev", Path(management).name).open("r+b") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            update(upload, file, data)
        except Ended as ended:
            log("ERROR", ended)
            return 1
    log("INFO", f"update of {address} complete")
    log("INFO", "Secure update OK")
    return 0


def update(upload, file, data):
    """Each line is printed as its phase begins, which the driver's status shows; not when it is over."""

    def status():
        return abi_flasher.read(f"{upload}/status")

    def until(condition, what):
        abi_flasher.until(condition, what)
        check_error(upload)

    log("INFO", f"updating from file {file} with size {len(data)}")
    log("INFO", "waiting for idle")
    abi_flasher.until(lambda: status() == "idle", "an idle card")
    for name, content in (("loading", b"1"), ("data", data), ("loading", b"0")):
        abi_flasher.write(f"{upload}/{name}", content)
    log("INFO", "preparing image file")
    until(lambda: status() not in ("receiving", "preparing"), "the card to be prepared")
    log("INFO", "writing image file")
    until(
        lambda: abi_flasher.read(f"{upload}/remaining_size") == "0" or status() == "idle",
        "the image to be written",
    )
    log("INFO", "programming image file")
    until(lambda: status() == "idle", "the end of the update")


def check_error(upload):
    try:
        error = abi_flasher.read(f"{upload}/error")
    except OSError as problem:
        if problem.errno == errno.EBUSY:
            return  # an update runs: there is none yet
        raise
    if error:
        raise Ended(error)


def rsu(address):
    with contextlib.redirect_stdout(io.StringIO()):
        abi_flasher.reset(address)
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')},000 - RSU operation complete", file=sys.stderr)
    return 0


if __name__ == "__main__":
    tool, *words = sys.argv[1:]
    sys.exit({"fpgasupdate": lambda: fpgasupdate(*words[-2:]), "rsu": lambda: rsu(words[-1])}[tool]())
