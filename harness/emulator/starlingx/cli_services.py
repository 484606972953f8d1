"""The commands of `system` about the local registry and service parameters (sections 2.5 and 2.7)."""

from __future__ import annotations

from typing import Final

from harness.emulator.starlingx.cli_client import CommandError, NotFound
from harness.emulator.starlingx.cli_session import Command, Given, Session


def _image_list(session: Session, given: Given) -> str:
    found = session.ask("GET", "registry_image")["registry_images"]
    return session.table(("Image Name",), [[image["name"]] for image in found], ("name",))


def _image_tags(session: Session, given: Given) -> str:
    found = session.ask("GET", "registry_image", query={"image_name": given.words[0]})["registry_images"]
    return session.table(("Image Tag",), [[image["tag"]] for image in found], ("tag",))


def _image_delete(session: Session, given: Given) -> str:
    name = given.words[0]
    try:
        session.ask("DELETE", "registry_image", query={"image_name_and_tag": name})
    except NotFound as error:
        raise CommandError(f"Image not found: {name}") from error
    return f"Image {name} deleted, please run garbage collect to free disk space.\n"


def _garbage_collect(session: Session, given: Given) -> str:
    session.ask("POST", "registry_image", query={"garbage_collect": "True"}, body={})
    return "Running docker registry garbage collect\n"


def _parameter_apply(session: Session, given: Given) -> str:
    service = given.words[0]
    try:
        session.ask("POST", "service_parameter", "apply", body={"service": service})
    except NotFound as error:
        raise CommandError("Failed to apply service parameters") from error
    return f"Applying {service} service parameters\n"


SERVICE_COMMANDS: Final = {
    "registry-image-list": Command(_image_list),
    "registry-image-tags": Command(_image_tags, 1),
    "registry-image-delete": Command(_image_delete, 1),
    "registry-garbage-collect": Command(_garbage_collect),
    "service-parameter-apply": Command(_parameter_apply, 1),
}
