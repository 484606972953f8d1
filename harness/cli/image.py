"""`hil image`: what an image is and whether it holds, and making signed, unsigned and broken ones."""

from __future__ import annotations

import difflib
import errno
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.form import Form, FormOption
from harness.errors import ConfigurationError, InfrastructureError
from harness.report.printable import printable

if TYPE_CHECKING:
    from harness.images.keys import PrivateKey
    from harness.images.parse import SignedImage
    from harness.images.verify import Verification

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Inspect, verify, sign and damage the signed images of an N3000. FILE may be - for a pipe.",
)


class Cert(str, Enum):
    """What the image does on the card."""

    UPDATE = "update"
    ROOT_KEY = "root-key"
    CANCEL = "cancel"


FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="The image; - reads standard input.")]
OutputOption = Annotated[
    str, typer.Option("-o", "--output", metavar="OUT", help="Where the image goes; - is standard output.")
]
RootKeyOption = Annotated[Path | None, typer.Option("--root-key", metavar="PEM", help="The root key.")]
CskKeyOption = Annotated[
    Path | None, typer.Option("--csk-key", metavar="PEM", help="The code signing key (CSK), a private key.")
]
PasswordOption = Annotated[
    str | None,
    typer.Option("--password-env", metavar="NAME", help="Environment variable with the PEM files' password."),
]

#: Nothing longer is read into memory: four times what a card's staging area holds (n3000.md 4.3).
_LARGEST = 4 * 0x3800000

#: Order and words of the table; the names are those of the JSON form.
_ROWS = {
    "content_type": "content type",
    "cert_type": "certificate type",
    "content_length": "content length",
    "slot": "slot",
    "version": "version",
    "root_entry_hash": "root entry hash",
    "csk_id": "CSK id",
    "cancel_id": "id to cancel",
    "unsigned": "unsigned",
}


@app.command(short_help="Show what an image says and what holds.")
def inspect(
    file: FileArgument,
    output: FormOption = Form.TABLE,
    fields: Annotated[
        bool, typer.Option("--fields", help="Also every field of the header: offset, size, bytes.")
    ] = False,
) -> None:
    """Show what an image says, which of its signatures and hashes hold, and every finding.

    \b
    hil image inspect image.bin
    hil image inspect -o json image.bin
    cat image.bin | hil image inspect --fields -

    Exit code 0 whatever the image is worth (`hil image verify` judges it); 2 for a file that is none.
    """
    verification = _verified(file)
    if output is Form.JSON:
        typer.echo(json.dumps(verification.to_json() | (_fields_json(verification.image) if fields else {})))
        return
    typer.echo("\n".join(_lines(verification)))
    if fields:
        typer.echo("\n".join(_field_lines(verification.image)))


@app.command(short_help="Check signatures, hashes and rules.")
def verify(file: FileArgument, output: FormOption = Form.TABLE) -> None:
    """Check every signature and hash of an image, and the rules of the format.

    \b
    hil image verify image.bin && echo fit for a card that holds its root
    cat image.bin | hil image verify -

    Exit code 0: nothing is wrong, and every signature that this kind of image carries is valid.
    1: something is wrong, or a signature is absent (an unsigned or half-signed image).
    2: the file cannot be read, or is no signed image at all.
    Whether a card takes the image depends on its root and cancelled CSKs, too.
    """
    verification = _verified(file)
    if output is Form.JSON:
        typer.echo(json.dumps({"ok": verification.ok} | verification.to_json()))
    else:
        typer.echo("\n".join(_lines(verification)))
        typer.echo(f"{printable(file, layout='')}: {_conclusion(verification)}")
    if not verification.ok:
        raise typer.Exit(1)


@app.command(short_help="Make a signed or unsigned image.")
def sign(
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="Raw payload, or an image to sign again; - is standard input."),
    ] = None,
    output: OutputOption = "-",
    content_type: Annotated[
        str, typer.Option("--type", metavar="SR|BMC|PR", help="Content type: SR is the user image.")
    ] = "SR",
    cert: Annotated[Cert, typer.Option("--cert", help="What the image does.")] = Cert.UPDATE,
    root_key: RootKeyOption = None,
    csk_key: CskKeyOption = None,
    csk_id: Annotated[
        int | None,
        typer.Option("--csk-id", metavar="0-127", help="Id of the CSK (default 0); the id to cancel."),
    ] = None,
    unsigned: Annotated[bool, typer.Option("--unsigned", help="No keys: all blocks, no signatures.")] = False,
    version: Annotated[str, typer.Option("--version-text", help="Image info, up to 32 bytes.")] = "",
    slot: Annotated[int, typer.Option("--slot", metavar="0-15", help="Slot number.")] = 0,
    password_env: PasswordOption = None,
) -> None:
    """Wrap a payload into an image, or make a root-key or cancellation image.

    \b
    Fresh keys:
      openssl ecparam -genkey -name prime256v1 -noout -out root.pem
      openssl ecparam -genkey -name prime256v1 -noout -out csk.pem
    Signed (a raw SR payload is bit-reversed, as cards expect it):
      hil image sign --type SR --root-key root.pem --csk-key csk.pem --csk-id 1 payload.raw -o image.bin
    Half signed: leave one of the keys out. Unsigned:
      hil image sign --unsigned payload.raw -o image.bin
    Signed again with other keys (the payload stays as it is):
      hil image sign --root-key other.pem --csk-key other-csk.pem image.bin -o again.bin
    Program a root entry hash (a public PEM is enough; it can never be undone on a card):
      hil image sign --cert root-key --root-key root.pem -o root-key.bin
    Cancel a CSK id (it can never be undone on a card):
      hil image sign --cert cancel --csk-id 0 --root-key root.pem -o cancel.bin

    The same input and keys always give the same bytes (nonces of RFC 6979).
    """
    password = _password(password_env)
    if cert is Cert.UPDATE:
        image = _update(
            file, content_type.upper(), root_key, csk_key, csk_id or 0, unsigned, version, slot, password
        )
    else:
        if file is not None or csk_key is not None or unsigned or version or slot:
            raise ConfigurationError(
                f"A {cert.value} image takes neither a payload nor a CSK, version or slot.",
                hint=f"hil image sign --cert {cert.value} --root-key root.pem"
                + (" --csk-id 0" if cert is Cert.CANCEL else ""),
            )
        image = _certificate(cert, content_type.upper(), root_key, csk_id, password)
    _write(output, image)


@app.command()
def damage(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Which damage, see --list.")] = None,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="The image; - is standard input.")
    ] = None,
    output: OutputOption = "-",
    listed: Annotated[bool, typer.Option("--list", help="List the damages and what each breaks.")] = False,
    root_key: RootKeyOption = None,
    csk_key: CskKeyOption = None,
    password_env: PasswordOption = None,
) -> None:
    """Break one rule of an image on purpose.

    \b
    hil image damage --list
    hil image damage b0-signature image.bin -o broken.bin
    hil image damage csk-permission image.bin --root-key root.pem -o broken.bin

    Where a signature covers the damaged bytes it is made again, so that nothing else is broken: that
    needs the key that the image was signed with. FILE must be an image; it stays as it is.
    """
    from harness.images.damage import DAMAGES

    if listed:
        typer.echo("\n".join(_damage_lines()))
        return
    if name is None or file is None:
        raise ConfigurationError("Which damage to which file?", hint="hil image damage NAME FILE -o OUT")
    if name not in DAMAGES:
        near = difflib.get_close_matches(name, DAMAGES, 1)
        suggestion = f"Did you mean {near[0]!r}? " if near else ""
        raise ConfigurationError(
            f"There is no damage {name!r}.", hint=f"{suggestion}`hil image damage --list` lists them."
        )
    password = _password(password_env)
    keys = {"root": _private_key(root_key, password), "csk": _private_key(csk_key, password)}
    _write(output, DAMAGES[name].apply(_read(file), **keys))


@app.command("root-hash", short_help="Print the root entry hash of a key or image.")
def root_hash(
    file: FileArgument, output: FormOption = Form.TABLE, password_env: PasswordOption = None
) -> None:
    """Print the root entry hash of a PEM key or of an image: what a card holds that trusts it.

    \b
    hil image root-hash root.pem
    hil image root-hash image.bin

    For a root-key image: the hash that it programs.
    """
    from harness.images.keys import load_public_key, looks_like_pem
    from harness.images.parse import parse

    data = _read(file)
    if looks_like_pem(data):
        found: str | None = load_public_key(data, file, _password(password_env)).root_entry_hash()
    else:
        image = parse(data)
        found = image.root_entry_hash or image.programs_root
    if found is None:
        raise ConfigurationError(f"{file} has no root entry: its certificate type is unknown.")
    typer.echo(json.dumps({"root_entry_hash": found}) if output is Form.JSON else found)


@app.command(short_help="Make the image of a recipe.")
def build(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Which recipe, see --list.")] = None,
    output: OutputOption = "-",
    listed: Annotated[bool, typer.Option("--list", help="List the recipes.")] = False,
    recipes: Annotated[Path, typer.Option("--recipes", metavar="FILE", help="The recipe file.")] = Path(
        "fixtures/images.yaml"
    ),
) -> None:
    """Make the image of a recipe: the same bytes on every machine, with keys that are public.

    \b
    hil image build --list
    hil image build A/csk0 -o image.bin
    """
    from harness.images import recipes as recipe_book

    try:
        text = recipes.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"Cannot read the recipes {recipes}: {getattr(error, 'strerror', None) or error}.",
            hint="Call this in the project's folder, or give --recipes FILE.",
        ) from error
    known = recipe_book.load_recipes(text)
    if listed:
        width = max(map(len, known), default=0)
        typer.echo("\n".join(f"{recipe.name:<{width}}  {recipe.what}" for recipe in known.values()))
        return
    if name is None:
        raise ConfigurationError("Which recipe?", hint="`hil image build --list` lists them.")
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        suggestion = f"Did you mean {near[0]!r}? " if near else ""
        raise ConfigurationError(
            f"There is no recipe {name!r} in {recipes}.",
            hint=f"{suggestion}`hil image build --list` lists them.",
        )
    _write(output, recipe_book.build(known[name]))


def _update(
    file: str | None,
    content_type: str,
    root_key: Path | None,
    csk_key: Path | None,
    csk_id: int,
    unsigned: bool,
    version: str,
    slot: int,
    password: bytes | None,
) -> bytes:
    from harness.images.sign import sign as sign_payload

    if file is None:
        raise ConfigurationError("There is no payload to sign.", hint="Give its file, or - for a pipe.")
    if unsigned and (root_key or csk_key):
        raise ConfigurationError("--unsigned and a key contradict each other.", hint="Leave one of them out.")
    if not (unsigned or root_key or csk_key):
        raise ConfigurationError(
            "No key was given.", hint="Give --root-key and --csk-key, or --unsigned if that is meant."
        )
    root, csk = _private_key(root_key, password), _private_key(csk_key, password)
    return sign_payload(
        _read(file), content_type, root=root, csk=csk, csk_id=csk_id, version=version, slot=slot
    )


def _certificate(
    cert: Cert, content_type: str, root_key: Path | None, csk_id: int | None, password: bytes | None
) -> bytes:
    from harness.images.keys import load_public_key
    from harness.images.sign import cancellation_image, root_key_image

    if root_key is None:
        raise ConfigurationError(f"A {cert.value} image needs the root key.", hint="Give --root-key PEM.")
    if cert is Cert.ROOT_KEY:
        if csk_id is not None:
            raise ConfigurationError("A root-key image has no CSK id.", hint="Leave --csk-id out.")
        return root_key_image(load_public_key(_read(str(root_key)), str(root_key), password), content_type)
    if csk_id is None:
        raise ConfigurationError("Which CSK id is to be cancelled?", hint="Give --csk-id, 0 to 127.")
    root = _private_key(root_key, password)
    assert root is not None
    return cancellation_image(csk_id, root, content_type)


def _private_key(path: Path | None, password: bytes | None) -> PrivateKey | None:
    from harness.images.keys import load_private_key

    return load_private_key(_read(str(path)), str(path), password) if path else None


def _password(variable: str | None) -> bytes | None:
    """Return the password that the environment holds; it never comes on the command line."""
    if variable is None:
        return None
    if variable not in os.environ:
        raise ConfigurationError(
            f"The environment variable {variable}, which --password-env names, is not set."
        )
    return os.fsencode(os.environ[variable])


@contextmanager
def _opened(file: str) -> Iterator[Any]:
    """Open ``file`` unbuffered, or standard input, which the library's types give no ``readinto``.

    :raises ConfigurationError: it cannot be read.
    """
    name = "standard input" if file == "-" else file
    try:
        if file == "-":
            yield sys.stdin.buffer
        elif not file:
            raise ConfigurationError("The name of the file is empty.")
        else:
            with Path(file).open("rb", buffering=0) as stream:
                yield stream
    except OSError as error:
        raise ConfigurationError(f"Cannot read {name}: {error.strerror}.") from error


def _read(file: str) -> bytes:
    """Return what ``file`` holds. :raises ConfigurationError: it cannot be read, or it does not end."""
    chunks: list[bytes] = []
    size = 0
    with _opened(file) as stream:
        while chunk := stream.read(_LARGEST - size):
            chunks.append(chunk)
            size += len(chunk)
            if size >= _LARGEST:
                raise ConfigurationError(f"{file} has {_LARGEST} bytes or more; no image is that large.")
    return b"".join(chunks)


def _write(output: str, data: bytes) -> None:
    """Write ``data`` whole or not at all, where that is possible: half an image must not pass for one.

    :raises ConfigurationError: there is no such place. :raises InfrastructureError: the disk is full.
    """
    if output == "-" and sys.stdout.isatty():
        raise ConfigurationError(
            "An image is binary and would garble the terminal; nothing was written.",
            hint="Give -o OUT, or pipe it on.",
        )
    try:
        if output == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            _write_file(Path(output), data)
    except BrokenPipeError:
        raise  # the reader of the pipe went away; the command line's frame ends quietly
    except OSError as error:
        name = "standard output" if output == "-" else output
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
        kind = InfrastructureError if full else ConfigurationError
        raise kind(f"Cannot write {name}: {error.strerror}.") from error


def _write_file(path: Path, data: bytes) -> None:
    if path.exists() and not path.is_file():
        path.write_bytes(data)  # a device or a pipe keeps its place; a folder is an error
        return
    target = path.resolve()
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        fresh.write_bytes(data)
        if target.exists():
            shutil.copymode(target, fresh)
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _verified(file: str) -> Verification:
    """Verify ``file`` as a stream: a large one is never in memory as a whole."""
    from harness.images.verify import verify_stream

    with _opened(file) as stream:
        return verify_stream(stream)


def _conclusion(verification: Verification) -> str:
    if verification.ok:
        return "valid"
    if verification.findings:
        return f"not valid, {len(verification.findings)} finding(s)"
    return (
        "unsigned" if verification.image.unsigned and verification.block0.value == "absent" else "half signed"
    )


def _lines(verification: Verification) -> Iterator[str]:
    values = verification.to_json()
    rows = {words: values[name] for name, words in _ROWS.items() if values[name] not in (None, "")}
    if verification.image.programs_root:
        rows["programs root"] = verification.image.programs_root
    rows["CSK signature"] = verification.csk.value
    rows["Block 0 signature"] = verification.block0.value
    rows["payload SHA-256"] = "right" if verification.payload_sha256_ok else "wrong"
    rows["payload SHA-384"] = "right" if verification.payload_sha384_ok else "wrong"
    for words, value in rows.items():
        shown = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
        yield f"{words:<18} {printable(str(shown), layout='')}"
    for finding in verification.findings:
        yield f"finding at 0x{finding.offset:04x}  {finding.rule}: {finding.message}"


def _fields_json(image: SignedImage) -> dict[str, Any]:
    return {
        "fields": [
            {"name": field.name, "offset": field.offset, "size": field.size, "bytes": value.hex()}
            for field, value in image.fields()
        ]
    }


def _field_lines(image: SignedImage) -> Iterator[str]:
    for field, value in image.fields():
        shown = (value if field.size <= 4 else value.rstrip(b"\0")).hex()
        zeros = field.size - len(shown) // 2
        tail = f"{' + ' if shown else ''}{zeros} zero bytes" if zeros else ""
        yield f"0x{field.offset:04x} {field.size:>4}  {field.name:<24} {shown}{tail}"


def _damage_lines() -> Iterator[str]:
    from harness.images.damage import DAMAGES

    yield f"{'NAME':<25} {'BYTES':<15} {'CODE':<5} {'FOR':<20} {'BREAKS':<42} WHAT"
    for entry in DAMAGES.values():
        certs = "any" if len(entry.cert_types) == 4 else "/".join(sorted(entry.cert_types))
        rules = ", ".join(entry.rules)
        columns = f"{entry.name:<25} {entry.byte_range:<15} {entry.code or '-':<5} {certs:<20} {rules:<42}"
        yield f"{columns} {entry.what}"
