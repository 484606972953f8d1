"""The vendor's tools as far as a flash and a reset need them, on the kernel's interface alone.

Called with `fpgasupdate -y --log-level debug FILE ADDRESS` or `rsu bmcimg ADDRESS`. What they print and how
they exit is that of OPAE's tools; what they do is done by abi_flasher, which has nothing of the emulator.
"""

import contextlib
import io
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import abi_flasher


def log(level, text):
    stamp = time.strftime("%Y-%m-%d %H:%M:%S.00")
    print(f"[{stamp}] [{level:8}] {text}", flush=True)


def fpgasupdate(file, address):
    data = Path(file).read_bytes()
    if len(data) < 1152 or data[:4] != bytes.fromhex("19fdeab6"):
        log("ERROR", f"Unknown file format in {file}")
        return 1
    log("WARNING", "Update starting. Please do not interrupt.")
    for words in (
        f"updating from file {file} with size {len(data)}",
        "waiting for idle",
        "preparing image file",
    ):
        log("INFO", words)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        abi_flasher.flash(file, address)
    error = abi_flasher.json.loads(said.getvalue())["error"]
    log("INFO", "writing image file")
    log("INFO", "programming image file")
    if error:
        log("ERROR", error)
        return 1
    log("INFO", f"update of {address} complete")
    log("INFO", "Secure update OK")
    return 0


def rsu(address):
    with contextlib.redirect_stdout(io.StringIO()):
        abi_flasher.reset(address)
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')},000 - RSU operation complete", file=sys.stderr)
    return 0


if __name__ == "__main__":
    tool, *words = sys.argv[1:]
    sys.exit({"fpgasupdate": lambda: fpgasupdate(*words[-2:]), "rsu": lambda: rsu(words[-1])}[tool]())
