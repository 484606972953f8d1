"""The signed-image format of the N3000: layout, parsing, verification, signing, damaging, recipes. Pure."""
