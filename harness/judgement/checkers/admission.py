"""What documents promise of an image on a card: that it lands, or that the card refuses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from harness.judgement.grouping import fact, field_of, word
from harness.judgement.records import Observation
from harness.judgement.values import Unknown, Value

#: Intel FPGA PAC N3000 Security User Guide (683519): policy of root entry hash and CSK cancellation.
Promised = Literal["lands", "unchanged"]
_SECTION_OF = {"bmc-image": "bmc", "pr-image": "pr"}


def promised_on(
    image: Mapping[str, Any], before: Observation | None, programmed: str = ""
) -> tuple[Value[Promised], str]:
    """Return what is promised of an image, whole as it was signed, on a card as it was ``before``; and why.

    :param programmed: the root entry hash that is written to the card before the image is.
    """
    effect = word(image, "effect")
    section = _SECTION_OF.get(effect) or (word(image, "section") or "SR").lower()
    root = field_of(before, f"{section}_root")
    if isinstance(root, Unknown):
        return root, f"its root entry hash is {root}"
    if effect == "root-key":
        return _root_key(fact(image, "programs_root"), root)
    root = root or programmed
    if effect not in ("user-image", "bmc-image", "pr-image", "key-cancellation"):
        why = Unknown("what the image is, is not known")
        return why, str(why)
    if not root:
        return "unchanged" if effect == "key-cancellation" else "lands", "the card has no root key"
    if image.get("unsigned") is True:
        return "unchanged", f"a card with the root key {root[:8]}... refuses an unsigned image"
    signer = fact(image, "root_entry_hash")
    if isinstance(signer, Unknown):
        return signer, f"who signed it is {signer}"
    if str(signer).lower() != root.lower():
        return "unchanged", f"it is not signed by the card's root {root[:8]}..."
    cancelled = field_of(before, f"{section}_cancelled")
    if isinstance(cancelled, Unknown):
        return cancelled, f"which keys are cancelled is {cancelled}"
    if effect != "key-cancellation" and image.get("csk_id") in cancelled:
        return "unchanged", f"its key {image.get('csk_id')} is cancelled"
    return "lands", "it is signed by the card's root"


def _root_key(programs: Any, root: str) -> tuple[Value[Promised], str]:
    if isinstance(programs, Unknown):
        return programs, f"which root it programs is {programs}"
    if not root or str(programs).lower() == root.lower():
        return "lands", "the card has no other root key"
    return "unchanged", f"the card has the root key {root[:8]}... already, and takes no second one"
