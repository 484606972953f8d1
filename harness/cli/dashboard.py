"""`hil dashboard`: a page on this machine that shows what goes on, until Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from harness.errors import ConfigurationError, InfrastructureError

if TYPE_CHECKING:
    import socket

app = typer.Typer(add_completion=False, rich_markup_mode=None)
_EPILOG: Final = """Examples:

  hil dashboard

  hil dashboard --port 8080

  HIL_DASHBOARD_TOKEN=$(openssl rand -hex 16) hil dashboard --bind 0.0.0.0
"""
#: Where a token comes from: not from the command line, where everybody on the machine can read it.
VARIABLE: Final = "HIL_DASHBOARD_TOKEN"
_SHORTEST: Final = 16


@app.command(epilog=_EPILOG)
def dashboard(
    bind: Annotated[str, typer.Option(help="Any address but loopback needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 0,
    reports: Annotated[Path, typer.Option(help="Where runs are kept.")] = Path("reports"),
    store: Annotated[str | None, typer.Option(metavar="URL", help="The index, as for `hil run`.")] = None,
    token: Annotated[str, typer.Option(envvar=VARIABLE, hidden=True)] = "",
) -> None:
    """Show running runs, devices, the newest divergences and trends on a page; Ctrl-C ends it."""
    import uvicorn

    from harness.dashboard.serving import dashboard as application
    from harness.dashboard.serving import is_loopback, link
    from harness.dashboard.state import State
    from harness.store.place import index_url

    if not is_loopback(bind) and len(token) < _SHORTEST:
        raise ConfigurationError(
            f"Others would see the page at {bind}: that takes a token of at least {_SHORTEST} characters.",
            hint=f"Such as {VARIABLE}=$(openssl rand -hex 16) hil dashboard --bind {bind}",
        )
    if not (token.isascii() and token.isprintable()):
        raise ConfigurationError(f"{VARIABLE} has characters that no link can carry; letters and digits do.")
    state = State(reports, index_url(reports, store))
    config = uvicorn.Config(
        application(state, token=token),
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    with _listening(bind, port) as listening:
        address, number = listening.getsockname()[:2]
        typer.echo(f"{link(address, number, token)}\nCtrl-C ends it.")
        try:
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            state.close()


def _listening(bind: str, port: int) -> socket.socket:
    import socket

    try:
        family, _, _, _, address = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise InfrastructureError(
            f"The page cannot be served at {bind} port {port}: {error.strerror or error}.",
            hint="Another --port may be free; 0 takes any.",
        ) from None
