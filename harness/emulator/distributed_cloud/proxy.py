"""The proxy before a system controller's sysinv: what it does besides passing on (section 5.1)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from harness.emulator.starlingx.sysinv import Answer, Request, Sysinv
from harness.emulator.starlingx.uploads import file_name

if TYPE_CHECKING:
    from harness.emulator.distributed_cloud.cloud import Cloud

_LOG = logging.getLogger(__name__)


class Proxy(Sysinv):
    """The API of a controller in the region SystemController: changes of images reach vault and audit."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud.controller)
        self._cloud = cloud

    def upload_image(self, request: Request) -> Answer:
        """POST device_images: its file goes into the vault as well."""
        status, answer = super().upload_image(request)
        if answer["error"] or request.content is None:
            return status, answer
        try:
            self._cloud.vault.put(answer["device_image"], request.content)
        except OSError as error:
            _LOG.warning("%s: the vault does not take an image: %s", self._cloud.controller.name, error)
            if not self._cloud.defects.on("upload-without-vault-file"):
                self._take_back(answer["device_image"]["uuid"])
                return status, {"success": "", "error": f"Failed to copy the image to the vault: {error}"}
        self._cloud.auditing.changed()
        return status, answer

    def _take_back(self, uuid: str) -> None:
        row = self._database.one("device_images", uuid=uuid)
        if row is not None:
            self._database.remove("device_images", row["id"])
            (self._system.images_folder / file_name(row)).unlink(missing_ok=True)

    def change_image(self, request: Request, uuid: str) -> Answer:
        """PATCH device_images/{uuid}."""
        answer = super().change_image(request, uuid)
        self._cloud.auditing.changed()
        return answer

    def delete_image(self, request: Request, uuid: str) -> Answer:
        """DELETE device_images/{uuid}: its file leaves the vault."""
        status, answer = super().delete_image(request, uuid)
        self._cloud.vault.remove(answer)
        self._cloud.auditing.changed()
        return status, answer
