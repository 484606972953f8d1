"""The forms of single values of an inventory: names, addresses, paths, command lines, and no secrets."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, ValidationInfo

_ADDRESS = re.compile(r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[01][0-9a-f]\.[0-7])")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HASH = re.compile(r"(?:0x)?((?:[0-9a-f]{2}){32})")
_HOST_ADDRESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9_.-]+)?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\$-]*")
_REMOTE_PATH = re.compile(r"(?:/[A-Za-z0-9._+-]+)+/?")
_PROGRAM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*|(?:/[A-Za-z0-9._+-]+)+")

#: What hands a secret to a command, wherever in a command line it stands, also within a line for a shell.
_SECRET_IN_COMMAND = re.compile(
    r"(?i:--?pass(?:w(?:or)?d|phrase)?(?:[=\s]|$))"
    r"|(?i:\b\w*(?:passw(?:or)?d|passphrase|secret|token)\w*=(?!\$)\S)"
    r"|://[^/\s:@]*:[^/\s@]+@"
    r"|\bsshpass\s+-p"
    r"|\b(?:curl|wget)\b.*\s(?:-u|--user)[=\s]*\S+:\S"
)


def _name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a name; letters, digits, '.', '_' and '-' are allowed")
    return text


def _address(text: str) -> str:
    match = _ADDRESS.fullmatch(text.lower())
    if match is None:
        raise ValueError(
            f"{text!r} is not a PCI address; it has the form 0000:b2:00.0 (domain:bus:device.function)"
        )
    return f"{match[1] or '0000'}:{match[2]}"


def _mac(text: str) -> str:
    plain = text.lower().replace("-", ":")
    if _MAC.fullmatch(plain) is None:
        raise ValueError(f"{text!r} is not a MAC address; it has the form 64:4c:36:12:34:56")
    if int(plain[:2], 16) & 1 or plain == "00:00:00:00:00:00":
        raise ValueError(
            f"{text!r} is no card's own MAC address: it is zero, or stands for several (its first bit)"
        )
    return plain


def _env_name(text: str) -> str:
    if _ENV_NAME.fullmatch(text) is None:
        raise ValueError("not the name of an environment variable; give the name, never the secret itself")
    return text


def _host_address(text: str) -> str:
    # What was given is not repeated, here and for the user: it may hold a password.
    if _HOST_ADDRESS.fullmatch(text) is None:
        raise ValueError(
            "not the name or the IP address of a host; user, port and credentials have keys of their own"
        )
    return text


def _user(text: str) -> str:
    if _USER.fullmatch(text) is None:
        raise ValueError("not the name of a user; a password never stands here, see 'credentials'")
    return text


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        known = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0 and " " not in text
    except ValueError:
        known = None
    if not known:
        raise ValueError("not a URL; it has the form https://registry.example:9001")
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds a user or a password; move them to 'user' and 'credentials'")
    return text


def _sr_root(text: str) -> str:
    """Normalise a root entry hash; anything else is the name of a recipe, which the lab looks up."""
    match = _HASH.fullmatch(text.lower())
    return match[1] if match else text


def _file_path(path: Path, info: ValidationInfo) -> Path:
    """A relative path counts from the inventory's own directory, so that it means the same everywhere."""
    base: Path = (info.context or {}).get("base", Path())
    try:
        return base / path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"there is no such home directory: {error}") from None


def _remote_path(text: str) -> str:
    """A path on a host becomes part of commands there; no character of it may mean anything to them."""
    if _REMOTE_PATH.fullmatch(text) is None or ".." in text.split("/"):
        raise ValueError(
            f"{text!r} is not a plain absolute path; letters, digits, '.', '_', '+', '-' and '/' are "
            "allowed, and no '..'"
        )
    return text.rstrip("/")


def _upload_dir(text: str) -> str:
    path = _remote_path(text)
    if path.split("/")[1] in ("dev", "proc", "sys"):
        raise ValueError(
            f"{text!r} is no place for files: what was put below /{path.split('/')[1]} is never read back"
        )
    return path


def _program(text: str) -> str:
    if _PROGRAM.fullmatch(text) is None:
        raise ValueError(
            f"{text!r} is neither the name nor the absolute path of a program; options are not allowed"
        )
    return text


def _words(command: object) -> object:
    if not isinstance(command, str):
        return command
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ValueError(f"not a command line: {str(error)[:1].lower()}{str(error)[1:]}") from None


def _no_password_in(words: tuple[str, ...]) -> tuple[str, ...]:
    line = " ".join(words)
    if _SECRET_IN_COMMAND.search(line) or re.search(r"\bipmitool\b.*\s-P", line):
        raise ValueError(
            "hands a password to a command; let the command read it from the environment or a file "
            "(ipmitool: -E or -f FILE)"
        )
    return words


Name = Annotated[str, AfterValidator(_name)]
PciAddress = Annotated[str, AfterValidator(_address)]
MacAddress = Annotated[str, AfterValidator(_mac)]
EnvName = Annotated[str, AfterValidator(_env_name)]
HostAddress = Annotated[str, AfterValidator(_host_address)]
User = Annotated[str, AfterValidator(_user)]
Url = Annotated[str, AfterValidator(_url)]
SrRoot = Annotated[str, AfterValidator(_sr_root)]
FilePath = Annotated[Path, AfterValidator(_file_path)]
RemotePath = Annotated[str, AfterValidator(_remote_path)]
UploadDir = Annotated[str, AfterValidator(_upload_dir)]
ProgramName = Annotated[str, AfterValidator(_program)]
CommandLine = Annotated[
    tuple[str, ...], BeforeValidator(_words), AfterValidator(_no_password_in), Field(min_length=1)
]
CskId = Annotated[StrictInt, Field(ge=0, le=127)]
