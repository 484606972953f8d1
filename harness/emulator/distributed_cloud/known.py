"""The known defects of dcmanager, of the proxy and of the VIM: part of the one table of known defects."""

from __future__ import annotations

from typing import Final

from harness.emulator.starlingx.releases import EVER, FIRST, LATER, Defect

CLOUD_DEFECTS: Final = (
    Defect(
        "no-labels-in-sync",
        "sections 5.2 and 5.3",
        EVER,
        "a subcloud whose devices have lost all their labels is in-sync",
        "FALSE_SUCCESS",
    ),
    Defect(
        "sync-from-rows-only",
        "section 5.2",
        EVER,
        "a subcloud is in-sync by its rows: no card is read, no file is compared",
        "FALSE_SUCCESS",
    ),
    Defect(
        "sync-by-uuid",
        "LP 1952444, 1b3e149d",
        FIRST,
        "a subcloud that has the same image by another uuid is out-of-sync",
        "FALSE_FAILURE",
    ),
    Defect(
        "key-images-not-audited",
        "LP 1952444, 66e55175",
        ("stx-6",),
        "the status stays unknown once a root key or a revocation is applied on the controller",
        "LOST",
    ),
    Defect(
        "status-stays-unknown",
        "story 2007267, d5fbf891",
        (),
        "the status stays unknown after every change of an image",
        "LOST",
    ),
    Defect(
        "no-devices-in-sync",
        "section 5.2",
        EVER,
        "a subcloud whose devices are all disabled is in-sync, whatever its cards hold",
        "FALSE_SUCCESS",
    ),
    Defect(
        "regionone-error-in-sync",
        "section 5.2",
        EVER,
        "every subcloud is in-sync while the controller's own images cannot be listed",
        "FALSE_SUCCESS",
    ),
    Defect(
        "unmanaged-in-sync",
        "LP 2081077, 5ec24714",
        (),
        "a subcloud that is not managed is in-sync",
        "FALSE_SUCCESS",
    ),
    Defect(
        "forced-audit-lost",
        "LP 1890294, 5aab8597",
        FIRST,
        "a subcloud has no firmware status for up to an hour after it was managed",
        "STALE",
    ),
    Defect(
        "out-of-sync-until-all-finish",
        "LP 1890952, 82fa2e9b",
        FIRST,
        "a subcloud whose step is complete is out-of-sync until the whole strategy is",
        "STALE",
    ),
    Defect(
        "finishing-forces-in-sync",
        "82fa2e9b; section 5.3",
        LATER,
        "a subcloud whose step is complete is in-sync until the next audit, whatever it holds",
        "FALSE_SUCCESS",
    ),
    Defect(
        "finishing-without-retries",
        "LP 1922281, b0b3cfe0",
        FIRST,
        "a step fails where the API of its subcloud is away for a moment after the unlock",
        "FALSE_FAILURE",
    ),
    Defect(
        "subcloud-labels-applied",
        "LP 1890355, 663fcf0f",
        FIRST,
        "an image is applied in a subcloud to the labels of its device alone, not to the controller's",
        "CONTRADICTION",
    ),
    Defect(
        "revocation-upload-fails",
        "LP 1890340, 663fcf0f",
        FIRST,
        "a key revocation cannot be brought to a subcloud: its number does not go into a form",
        "FAILED",
    ),
    Defect(
        "rerun-alternates-images",
        "section 5.3",
        EVER,
        "each run writes the other one of two images that the controller lists, and is complete",
        "FALSE_SUCCESS",
    ),
    Defect(
        "leftover-vim-strategy",
        "LP 1891521, 12b81ff4",
        FIRST,
        "a step fails because the strategy of the last run is still there in its subcloud",
        "FAILED",
    ),
    Defect(
        "upload-without-vault-file",
        "section 5.1",
        EVER,
        "an image is uploaded although the vault has no file of it, so that no subcloud can get it",
        "FALSE_SUCCESS",
    ),
    Defect(
        "vim-hangs-on-pending",
        "LP 1890915, 1deaa07",
        FIRST,
        "a strategy is applying for an hour after the update of its host has failed",
        "STALE",
    ),
    Defect(
        "vim-restart-traceback",
        "LP 1929251, 73c683d",
        FIRST,
        "a strategy fails although its hosts were updated: the VIM was restarted meanwhile",
        "FALSE_FAILURE",
    ),
    Defect(
        "vim-ignores-null",
        "section 5.5",
        EVER,
        "a strategy fails after an hour because its host says nothing of its update",
        "FALSE_FAILURE",
    ),
)
