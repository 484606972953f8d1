"""Which references are legal: examples of distribution's grammar, and properties over what is made by it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ConfigurationError
from harness.registry.reference import Reference, is_digest, parse_reference

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag", "digest"),
    [
        ("tool", "", "tool", "latest", ""),
        ("lab/tool:v1", "", "lab/tool", "v1", ""),
        (
            "registry.local:9001/quay.io/lab/tool:v0.15.0",
            "registry.local:9001",
            "quay.io/lab/tool",
            "v0.15.0",
            "",
        ),
        ("localhost/tool", "localhost", "tool", "latest", ""),
        ("localhost:5000/tool", "localhost:5000", "tool", "latest", ""),
        ("[fd01::2]:9001/tool:1", "[fd01::2]:9001", "tool", "1", ""),
        ("Reg/tool", "Reg", "tool", "latest", ""),
        (f"reg.io/a@{DIGEST}", "reg.io", "a", "", DIGEST),
        (f"reg.io/a:v1@{DIGEST}", "reg.io", "a", "v1", DIGEST),
        ("a.b/c__d/e---f/g_h.i:A_b.c-d", "a.b", "c__d/e---f/g_h.i", "A_b.c-d", ""),
        ("x:" + "t" * 128, "", "x", "t" * 128, ""),
    ],
)
def test_legal_ones(text: str, registry: str, repository: str, tag: str, digest: str) -> None:
    found = parse_reference(text)
    assert (found.registry, found.repository, found.tag, found.digest) == (registry, repository, tag, digest)
    assert found.wanted == (digest or tag)
    if ":" in text or "@" in text:
        assert parse_reference(str(found)) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no part of a name"),
        ("lab/Tool", "in lower case"),
        ("lab//tool", "'' is no part of a name"),
        ("lab/tool/", "'' is no part of a name"),
        ("lab/-tool", "'-tool' is no part"),
        ("lab/to..ol", "'to..ol' is no part"),
        ("lab/to___ol", "'to___ol' is no part"),
        ("lab/../tool", "'..' is no part"),
        ("lab/tool:", "nothing follows the colon"),
        ("lab/tool:-x", "'-x' is no tag"),
        ("lab/tool:a/b", "'a/b' is no tag"),
        ("x:" + "t" * 129, "is no tag"),
        ("lab/tool@", "nothing follows the @"),
        ("lab/tool@sha256:abc", "a digest is sha256: and 64 hex digits"),
        (f"lab/tool@{DIGEST.upper()}", "a digest is"),
        ("reg.io:port/tool", "'reg.io:port' is no registry"),
        ("reg_x.io/tool", "'reg_x.io' is no registry"),
        ("https://reg.io/tool", "'https:' is no registry"),
        ("a/" * 128 + "b", "has 257 letters"),
        ("lab/tool:v1\n", "is no tag"),
        ("tööl", "'tööl' is no part"),
    ],
)
def test_illegal_ones_are_told_by_their_part(text: str, why: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_reference(text)
    assert why in caught.value.message
    assert "registry.local:9001/" in caught.value.hint


def test_one_without_tag_and_digest_names_nothing() -> None:
    with pytest.raises(ConfigurationError, match="neither a tag nor a digest"):
        Reference("", "tool")


def test_content_of_the_same_repository() -> None:
    found = parse_reference("reg.io/a/b:v1").at(DIGEST)
    assert str(found) == f"reg.io/a/b@{DIGEST}"


component = st.from_regex(r"[a-z0-9]{1,8}((\.|_|__|-{1,3})[a-z0-9]{1,8}){0,2}", fullmatch=True)
tags = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True)


@given(
    st.sampled_from(["", "registry.local:9001", "localhost", "[::1]:5000", "10.0.0.1:80"]),
    st.lists(component, min_size=1, max_size=5).map("/".join),
    tags | st.just(""),
    st.just(DIGEST) | st.just(""),
)
def test_what_is_put_together_by_the_grammar_comes_apart_again(
    registry: str, repository: str, tag: str, digest: str
) -> None:
    first = repository.partition("/")[0]
    if not registry and "/" in repository and ("." in first or first == "localhost"):
        return  # its first part is taken for a registry, as Docker has it
    text = (f"{registry}/" if registry else "") + repository
    text += (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")
    found = parse_reference(text)
    assert found == Reference(registry, repository, tag or ("" if digest else "latest"), digest)


@given(st.text(max_size=60))
def test_any_text_is_legal_or_refused(text: str) -> None:
    try:
        found = parse_reference(text)
    except ConfigurationError:
        return
    assert text.startswith(str(found).removesuffix(":latest"))


def test_digests() -> None:
    assert is_digest(DIGEST)
    assert is_digest("sha512:" + "a" * 128)
    assert not is_digest("md5:" + "a" * 32)
    assert not is_digest(DIGEST + "0")
    assert not is_digest(DIGEST + "\n")
