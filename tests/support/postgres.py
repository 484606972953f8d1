"""A real PostgreSQL server for tests: the machine's own, or Debian's package unpacked into the project."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from harness.packages import PackageError, library_path, tools_folder, unpacked
from harness.registry.ports import free_port

UNPACKED = tools_folder() / "postgresql"
#: PostgreSQL refuses to be root.
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
START_SECONDS = 60.0


@dataclass
class Server:
    """A running server; everybody on this machine is its superuser."""

    port: int
    databases: int = 0

    def new_database(self) -> str:
        """Return the URL of a database of its own."""
        self.databases += 1
        name = f"hil{self.databases}"
        with self.connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://hil@127.0.0.1:{self.port}/{name}"

    def connect(self, database: str) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="hil", dbname=database, autocommit=True, connect_timeout=5
        )


@contextmanager
def postgres() -> Iterator[Server]:
    """Start a server on a free port, with all of its files in a folder that goes with it."""
    programs, environment = _programs()
    as_nobody = NOBODY if os.geteuid() == 0 else ()
    with tempfile.TemporaryDirectory(prefix="hil-postgres-") as name:
        folder = Path(name)
        data = folder / "data"
        data.mkdir()
        if as_nobody:
            os.chown(folder, 65534, 65534)
            os.chown(data, 65534, 65534)
        settings = {"env": os.environ | environment | {"LC_ALL": "C"}, "stdin": subprocess.DEVNULL}
        made = subprocess.run(
            [
                *as_nobody,
                str(programs / "initdb"),
                "-D",
                str(data),
                "-U",
                "hil",
                "-A",
                "trust",
                "-N",
                "-E",
                "UTF8",
            ],
            capture_output=True,
            text=True,
            check=False,
            **settings,
        )
        assert made.returncode == 0, made.stderr
        server = Server(free_port())
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": name, "fsync": "off"}
        words = [word for key, value in options.items() for word in ("-c", f"{key}={value}")]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                [*as_nobody, str(programs / "postgres"), "-D", str(data), "-p", str(server.port), *words],
                stdout=log,
                stderr=log,
                **settings,
            )
        try:
            _wait(process, server, folder / "log")
            yield server
        finally:
            process.send_signal(signal.SIGINT)  # ends it at once, whoever is still connected
            process.wait(START_SECONDS)


def _wait(process: "subprocess.Popen[bytes]", server: Server, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            server.connect("postgres").close()
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"PostgreSQL did not start: {error}\n{log.read_text()}", pytrace=False)
            time.sleep(0.05)
        else:
            return


def _programs() -> tuple[Path, dict[str, str]]:
    """Return the folder of the server's programs, and the environment they need."""
    if own := _newest(Path("/")):
        return own, {}
    try:
        # A package of no content: the newest server is among what it needs.
        root = unpacked(["postgresql"], UNPACKED)
    except PackageError as error:
        pytest.fail(
            f"These tests need a real PostgreSQL server. None is installed, and Debian's package could not "
            f"be unpacked into {UNPACKED}: {error}\nInstall postgresql, or give this machine access to its "
            "package archive.",
            pytrace=False,
        )
    found = _newest(root)
    assert found, f"the package postgresql brings no server: {root}"
    return found, library_path(root)


def _newest(root: Path) -> Path | None:
    """Return the folder of the newest server below ``root``; None where there is none."""
    found = sorted(root.glob("usr/lib/postgresql/*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


assert shutil.which("setpriv"), "setpriv of util-linux is missing"
