"""A store on a file system of its own: filled to the last page, freed, and gone afterwards."""

import os
from pathlib import Path

import pytest
from support.lab_bench import IMAGE, LabBench, held
from support.mounted import blocked

from harness.errors import BlockedError
from harness.faults.own_store import OwnStore, is_own_store
from harness.faults.registry_actions import registry_action


def mounts() -> list[str]:
    return [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]


def test_nothing_fits_while_it_is_full(own_store_bench: LabBench) -> None:
    bench = own_store_bench
    bench.raw.push("a/b", "v0", IMAGE)
    action = registry_action("disk-full")
    action.check(bench)
    with held() as (gate, _):
        said = action.fire(bench, gate)
    root = Path(bench.lab.registry.storage)
    left = os.statvfs(root)
    assert (left.f_bavail, left.f_blocks * left.f_frsize) == (0, 4 << 20)
    assert said.startswith("filled the last ")
    assert said.endswith(" bytes of the store while PUT /v2/a/b/manifests/v1 (connection 1) was held")
    mark = bench.registry.log_mark()
    assert bench.raw.ask("POST", "/v2/a/b/blobs/uploads/", b"")[0] == 500
    bench.lab.registry.wait_for_log(lambda entry: "no space left on device" in str(entry), since=mark)
    assert bench.raw.ask("GET", "/v2/a/b/tags/list")[0] == 200, "what is there is served"
    for _ in range(2):
        action.undo(bench)
    bench.raw.push("a/b", "v1", IMAGE)
    assert [path.name for path in root.iterdir()] == ["docker"]


def test_a_store_is_gone_when_it_is_closed() -> None:
    try:
        store = OwnStore(1 << 20)
    except BlockedError as error:
        blocked(str(error))
    with store:
        folder = str(store.folder)
        assert folder in mounts()
        assert is_own_store(store.folder)
        assert not is_own_store(store.folder.parent)
        with (store.folder / "still-open").open("w"):
            store.close()
        store.close()
    assert folder not in mounts()
    assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("size", "who", "said"),
    [(1 << 20, 1000, "only root may"), (1 << 50, 0, "in memory does not fit: ")],
)
def test_where_none_can_be_made_it_says_why(
    monkeypatch: pytest.MonkeyPatch, size: int, who: int, said: str
) -> None:
    before = mounts()
    monkeypatch.setattr(os, "geteuid", lambda: who)
    with pytest.raises(BlockedError, match=said):
        OwnStore(size)
    assert mounts() == before


def test_nobody_else_s_disk_is_filled(bench: LabBench) -> None:
    with pytest.raises(BlockedError, match="is not on a file system of its own"):
        registry_action("disk-full").check(bench)
