"""A credential is a reference: the secret is found where it says, or the error says why not."""

import os
from pathlib import Path

import pytest

from harness.errors import ConfigurationError
from harness.inventory.credentials import Login, resolve
from harness.inventory.entries import Credential


def private_file(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def test_password_from_the_environment() -> None:
    login = resolve(Credential(env="LAB_PASSWORD"), {"LAB_PASSWORD": "s3cret"})
    assert login == Login(password="s3cret")
    assert login.secrets == ("s3cret",)
    assert "s3cret" not in repr(login)


@pytest.mark.parametrize("environ", [{}, {"LAB_PASSWORD": ""}])
def test_unset_or_empty_variable(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="LAB_PASSWORD") as caught:
        resolve(Credential(env="LAB_PASSWORD"), environ)
    assert "export LAB_PASSWORD" in caught.value.hint


def test_password_from_a_private_file(tmp_path: Path) -> None:
    file = private_file(tmp_path / "lab", " pass word \n")
    assert resolve(Credential(file=file)).password == " pass word "


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_file_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    file = private_file(tmp_path / "lab", "s3cret", mode)
    for credential in (Credential(file=file), Credential(key_file=file)):
        with pytest.raises(ConfigurationError, match=f"mode {mode:04o}") as caught:
            resolve(credential)
        assert "chmod 600" in caught.value.hint
        assert "s3cret" not in str(caught.value)


def test_missing_empty_and_odd_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        resolve(Credential(file=tmp_path / "none"))
    with pytest.raises(ConfigurationError, match="is empty"):
        resolve(Credential(file=private_file(tmp_path / "empty", "\n")))
    with pytest.raises(ConfigurationError, match="not a regular file"):
        resolve(Credential(key_file=tmp_path))
    os.mkfifo(tmp_path / "pipe", 0o600)  # opening it would wait for a writer
    with pytest.raises(ConfigurationError, match="not a regular file"):
        resolve(Credential(file=tmp_path / "pipe"))
    binary = private_file(tmp_path / "binary", "")
    binary.write_bytes(b"\xffs3cret")
    with pytest.raises(ConfigurationError, match="is not UTF-8 text") as caught:
        resolve(Credential(file=binary))
    assert "s3cret" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="more than one line") as caught:
        resolve(Credential(file=private_file(tmp_path / "key", "-----BEGIN\ns3cret\n-----END\n")))
    assert "s3cret" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="cannot be read: embedded null byte"):
        resolve(Credential(file=Path("a\0b")))


def test_key_file_and_agent(tmp_path: Path) -> None:
    key = private_file(tmp_path / "id", "key")
    assert resolve(Credential(key_file=key)) == Login(key_file=key)
    assert resolve(Credential(agent=True), {"SSH_AUTH_SOCK": "/run/agent"}) == Login(agent=True)
    with pytest.raises(ConfigurationError, match="SSH_AUTH_SOCK") as caught:
        resolve(Credential(agent=True), {})
    assert "ssh-add" in caught.value.hint
