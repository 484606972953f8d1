"""`hil image` as a stranger uses it: fresh keys, files and pipes, and errors that say what to do."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from typer.testing import CliRunner

from harness.cli.image import app
from harness.errors import ConfigurationError, NotAnImage
from harness.images.damage import DAMAGES
from harness.images.parse import parse
from harness.images.payload import reverse_bits
from harness.images.recipes import load_recipes

PROJECT = Path(__file__).parents[2]
VECTORS = PROJECT / "fixtures" / "vectors"
PAYLOAD = VECTORS / "payload_16k.raw"
SIGNED = VECTORS / "sr_A_csk0.bin"
ROOT_A = "8350fa47b09c8f8b4ef2b28b2d0c613e092f685f036b0b22f0b5d8186ce86772"

#: The keys of `inspect -o json`.
KEYS = {
    *("content_type", "cert_type", "content_length", "slot", "version", "root_entry_hash", "csk_id"),
    *("cancel_id", "signatures", "payload_sha256_ok", "payload_sha384_ok", "unsigned", "findings"),
}


def run(*words, stdin=b""):
    """Run `hil image WORDS`; an error of ours comes up as it is, for the frame of `hil` to tell."""
    result = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def said(*words, stdin=b""):
    return json.loads(run(*words, stdin=stdin).stdout)


@pytest.fixture
def keys(tmp_path):
    """Fresh PEM keys: root.pem, csk.pem, and the public half of root.pem."""
    for name in ("root", "csk"):
        key = ec.generate_private_key(ec.SECP256R1())
        (tmp_path / f"{name}.pem").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        (tmp_path / f"{name}-public.pem").write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
    return tmp_path


# -- inspect and verify ---------------------------------------------------------------------------


def test_inspect_gives_the_promised_keys_and_values():
    assert said("inspect", "-o", "json", SIGNED) == {
        "content_type": "SR",
        "cert_type": "UPDATE",
        "content_length": 16384,
        "slot": 0,
        "version": "",
        "root_entry_hash": ROOT_A,
        "csk_id": 0,
        "cancel_id": None,
        "signatures": {"csk": "valid", "block0": "valid"},
        "payload_sha256_ok": True,
        "payload_sha384_ok": True,
        "unsigned": False,
        "findings": [],
    }


@pytest.mark.parametrize("name", ["rkh_sr_A_256.bin", "cancel_sr_A_csk1.bin", "derived/t_csk_r_bit.bin"])
def test_inspect_gives_the_same_keys_for_every_image(name):
    assert set(said("inspect", "-o", "json", VECTORS / name)) == KEYS


def test_inspect_lists_findings_with_offset_rule_and_message():
    (finding,) = said("inspect", "-o", "json", VECTORS / "derived" / "t_csk_r_bit.bin")["findings"]
    assert (finding["offset"], finding["rule"]) == (0x19C, "csk-signature")
    assert "CSK" in finding["message"]


def test_inspect_reads_a_pipe():
    assert said("inspect", "-o", "json", "-", stdin=SIGNED.read_bytes()) == said(
        "inspect", "-o", "json", SIGNED
    )


def test_inspect_table_is_for_people():
    text = run("inspect", VECTORS / "derived" / "t_b0_sha256_bit.bin").stdout
    assert f"root entry hash    {ROOT_A}" in text
    assert "Block 0 signature  invalid" in text
    assert "finding at 0x0010  payload-sha256" in text


def test_inspect_shows_fields_with_offsets():
    text = run("inspect", "--fields", SIGNED).stdout
    assert "0x0114    4  csk_magic                2f1c7114" in text
    fields = said("inspect", "--fields", "-o", "json", SIGNED)["fields"]
    assert {"name": "csk_magic", "offset": 0x114, "size": 4, "bytes": "2f1c7114"} in fields


def test_inspect_of_a_root_key_image_shows_what_it_programs():
    assert f"programs root      {ROOT_A}" in run("inspect", VECTORS / "rkh_sr_A_256.bin").stdout


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("sr_A_csk0.bin", 0, ": valid"),
        ("rkh_sr_A_256.bin", 0, ": valid"),
        ("cancel_sr_A_csk0.bin", 0, ": valid"),
        ("sr_unsigned.bin", 1, ": unsigned"),
        ("derived/t_csk_r_bit.bin", 1, ": not valid, 1 finding"),
        ("derived/t_payload_first_bit.bin", 1, ": not valid, 2 finding"),
    ],
)
def test_verify_tells_by_exit_code(name, code, words):
    result = run("verify", VECTORS / name)
    assert result.exit_code == code
    assert words in result.stdout
    assert said("verify", "-o", "json", VECTORS / name)["ok"] == (code == 0)


@pytest.mark.parametrize("command", ["inspect", "verify", "root-hash"])
def test_what_is_no_image_is_an_error_of_usage(command):
    with pytest.raises(NotAnImage) as caught:
        run(command, PAYLOAD)
    assert caught.value.exit_code == 2
    assert "hil image sign" in caught.value.hint


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"Cannot read .*none\.bin: No such file"):
        run("verify", tmp_path / "none.bin")


# -- sign -----------------------------------------------------------------------------------------


def test_sign_with_fresh_keys(keys):
    out = keys / "out.bin"
    options = ("--type", "SR", "--root-key", keys / "root.pem", "--csk-key", keys / "csk.pem", "--csk-id", 1)
    run("sign", *options, PAYLOAD, "-o", out)
    assert run("verify", out).exit_code == 0
    image = parse(out.read_bytes())
    assert (image.content_type, image.csk_id) == ("SR", 1)
    assert out.read_bytes()[1024:] == reverse_bits(PAYLOAD.read_bytes())
    piped = run("sign", *options, "-", stdin=PAYLOAD.read_bytes()).stdout_bytes
    assert piped == out.read_bytes()
    again = keys / "again.bin"
    run("sign", *options, out, "-o", again)
    assert again.read_bytes() == out.read_bytes()


@pytest.mark.parametrize(
    ("given", "states"),
    [
        (["--root-key", "root.pem"], {"csk": "valid", "block0": "absent"}),
        (["--csk-key", "csk.pem"], {"csk": "absent", "block0": "valid"}),
        (["--unsigned"], {"csk": "absent", "block0": "absent"}),
    ],
)
def test_half_signed_and_unsigned(keys, monkeypatch, given, states):
    monkeypatch.chdir(keys)
    run("sign", *given, PAYLOAD, "-o", "out.bin")
    assert said("inspect", "-o", "json", "out.bin")["signatures"] == states
    assert run("verify", "out.bin").exit_code == 1


def test_root_key_image_from_the_public_key(keys):
    run("sign", "--cert", "root-key", "--root-key", keys / "root-public.pem", "-o", keys / "rk.bin")
    (expected,) = {run("root-hash", keys / name).stdout for name in ("root.pem", "root-public.pem", "rk.bin")}
    assert parse((keys / "rk.bin").read_bytes()).programs_root == expected.strip()


def test_cancellation(keys):
    run("sign", "--cert", "cancel", "--csk-id", 5, "--root-key", keys / "root.pem", "-o", keys / "c.bin")
    assert run("verify", keys / "c.bin").exit_code == 0
    assert said("inspect", "-o", "json", keys / "c.bin")["cancel_id"] == 5


def test_a_bmc_image_keeps_its_bytes(keys):
    run("sign", "--type", "bmc", "--unsigned", PAYLOAD, "-o", keys / "bmc.bin")
    assert (keys / "bmc.bin").read_bytes()[1024:] == PAYLOAD.read_bytes()


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["sign", PAYLOAD], "No key was given", "--unsigned"),
        (["sign", "--unsigned"], "no payload to sign", "- for a pipe"),
        (["sign", "--unsigned", "--root-key", "root.pem", PAYLOAD], "contradict", ""),
        (["sign", "--root-key", "root-public.pem", PAYLOAD], "root-public.pem is a public key", "private"),
        (["sign", "--root-key", PAYLOAD, PAYLOAD], "is no PEM private key", "openssl"),
        (["sign", "--root-key", "none.pem", PAYLOAD], "Cannot read none.pem", ""),
        (["sign", "--unsigned", "--type", "FIM", PAYLOAD], "no content type 'FIM'", "SR, BMC, PR"),
        (["sign", "--unsigned", "--type", "BMC", SIGNED], "type SR already", "raw payload"),
        (["sign", "--unsigned", "--csk-id", "128", PAYLOAD], "CSK id 128", "hil image damage"),
        (["sign", "--unsigned", PAYLOAD, "-o", "."], "Cannot write .", ""),
        (["sign", "--cert", "root-key"], "needs the root key", "--root-key"),
        (["sign", "--cert", "cancel", "--root-key", "root.pem"], "Which CSK id", "--csk-id"),
        (["sign", "--cert", "cancel", "--root-key", "root.pem", PAYLOAD], "neither a payload", "--csk-id 0"),
        (["sign", "--root-key", "root.pem", "--password-env", "HIL_UNSET", PAYLOAD], "HIL_UNSET", ""),
    ],
)
def test_wrong_use_is_told_and_nothing_is_written(keys, monkeypatch, words, message, hint):
    monkeypatch.chdir(keys)
    monkeypatch.delenv("HIL_UNSET", raising=False)
    words = [words[0], "-o", "out.bin", *words[1:]]
    with pytest.raises(ConfigurationError) as caught:
        run(*words)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert not Path("out.bin").exists()


def test_the_password_comes_from_the_environment(tmp_path, monkeypatch):
    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "locked.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"a secret"),
        )
    )
    monkeypatch.setenv("HIL_TEST_PASSWORD", "a secret")
    options = ("--csk-key", tmp_path / "locked.pem", "--password-env", "HIL_TEST_PASSWORD")
    run("sign", *options, PAYLOAD, "-o", tmp_path / "out.bin")
    assert said("inspect", "-o", "json", tmp_path / "out.bin")["signatures"]["block0"] == "valid"


# -- damage, root-hash, build ---------------------------------------------------------------------


def test_damage_lists_every_damage_with_its_bytes_and_rules():
    lines = run("damage", "--list").stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(DAMAGES)
    assert "0x0120-0x0123" in next(line for line in lines if line.startswith("csk-id "))


def test_damage_without_and_with_keys(keys):
    broken, out = keys / "broken.bin", keys / "out.bin"
    run("damage", "b0-signature", SIGNED, "-o", broken)
    assert said("inspect", "-o", "json", broken)["signatures"] == {"csk": "valid", "block0": "invalid"}
    with pytest.raises(ConfigurationError, match="with the root key") as caught:
        run("damage", "csk-permission", SIGNED, "-o", out)
    assert caught.value.hint == "Give --root-key."
    assert not out.exists()
    pems = ("--root-key", keys / "root.pem", "--csk-key", keys / "csk.pem")
    signed = run("sign", *pems, PAYLOAD).stdout_bytes
    damaged = run("damage", "csk-permission", "-", *pems, stdin=signed).stdout_bytes
    assert [f["rule"] for f in said("inspect", "-o", "json", "-", stdin=damaged)["findings"]] == [
        "csk-permission"
    ]


def test_an_unknown_damage_is_told_with_the_nearest_spelling():
    with pytest.raises(ConfigurationError) as caught:
        run("damage", "csk-permision", SIGNED)
    assert "Did you mean 'csk-permission'" in caught.value.hint
    with pytest.raises(ConfigurationError, match="Which damage to which file"):
        run("damage")


def test_root_hash_of_keys_and_images():
    public = VECTORS / "keys" / "keyA_fim_root_public_256.pem"
    for source in (SIGNED, VECTORS / "rkh_sr_A_256.bin", public):
        assert run("root-hash", source).stdout == ROOT_A + "\n"
    assert said("root-hash", "-o", "json", "-", stdin=public.read_bytes()) == {"root_entry_hash": ROOT_A}


def test_build_makes_the_image_of_a_recipe(tmp_path):
    book = ("--recipes", PROJECT / "fixtures" / "images.yaml")
    listed = run("build", "--list", *book).stdout
    assert [line.split()[0] for line in listed.splitlines()] == list(load_recipes(book[1].read_text()))
    run("build", "A/csk0", "-o", tmp_path / "a.bin", *book)
    assert run("verify", tmp_path / "a.bin").exit_code == 0
    with pytest.raises(ConfigurationError) as caught:
        run("build", "A/cks0", *book)
    assert "Did you mean 'A/csk0'" in caught.value.hint
    with pytest.raises(ConfigurationError, match="Cannot read the recipes"):
        run("build", "A/csk0", "--recipes", tmp_path / "none.yaml")


# -- the real command -----------------------------------------------------------------------------


def test_the_real_command_in_a_pipe_of_commands(tmp_path):
    """Binary through real pipes, and the frame's exit codes."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    assert shutil.which("hil", path=environment["PATH"]), "hil is installed beside the interpreter"
    script = (
        f"hil image sign --unsigned {PAYLOAD} | hil image damage payload-bit - | hil image verify -\n"
        'echo "verify $?"\n'
        f"hil image verify {PAYLOAD}\n"
        'echo "none $?"\n'
    )
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "payload-sha256" in done.stdout
    assert "verify 1\n" in done.stdout
    assert "none 2\n" in done.stdout
    assert "This is no signed image" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_an_image_says_cannot_steer_the_terminal(tmp_path):
    image = tmp_path / "image.bin"
    evil = "\x1b]0;t\x07\x9b2J\nCSK signature valid"
    run("sign", "--unsigned", PAYLOAD, "--version-text", evil, "-o", image)
    shown = run("inspect", image).stdout
    assert r"version            \x1b]0;t\x07\x9b2J\nCSK signature valid" in shown
    assert all(line.isprintable() for line in shown.splitlines())
    assert said("inspect", "-o", "json", image)["version"] == evil


@pytest.mark.parametrize("there", [False, True])
def test_half_an_image_is_never_left(tmp_path, there):
    """On a full disk, which a limit on the size of files stands in for."""
    out = tmp_path / "out.bin"
    if there:
        out.write_bytes(b"what was here")
    hil = f"{sys.executable} -c 'from harness.cli import main; main()'"
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 4; {hil} image sign --unsigned {PAYLOAD} -o {out}"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (3, f"Error: Cannot write {out}: File too large.\n")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == ([b"what was here"] if there else [])


def test_an_output_keeps_its_place_and_mode(tmp_path):
    target = tmp_path / "target.bin"
    target.write_bytes(b"old")
    target.chmod(0o600)
    (tmp_path / "link.bin").symlink_to(target)
    run("sign", "--unsigned", PAYLOAD, "-o", tmp_path / "link.bin")
    assert (tmp_path / "link.bin").is_symlink()
    assert parse(target.read_bytes()).unsigned
    assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link.bin", "target.bin"]


def test_a_file_without_end_is_not_taken_into_memory():
    with pytest.raises(ConfigurationError, match=r"/dev/zero has [0-9]+ bytes or more"):
        run("sign", "--unsigned", "/dev/zero")


def test_an_empty_name_is_no_file():
    with pytest.raises(ConfigurationError, match="name of the file is empty"):
        run("inspect", "")
