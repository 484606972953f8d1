"""The emulated shell and programs against the machine's own: the same commands on the same tree of files."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.emulator.vfs import Attribute, Device, Directory, Link, Regular, Vfs

pytestmark = pytest.mark.skipif(
    Path("/bin/sh").resolve().name != "dash", reason="compares with dash, the /bin/sh of Debian and Ubuntu"
)

SECURE = (
    "sys/bus/pci/devices/0000:b2:00.0/fpga_region/region*/dfl-fme.*/dfl_dev.*/*spi*/spi_master/spi*/spi*.*"
    "/n3000bmc-sec-update.*.auto"
)

FILES = {
    "data/a.txt": b"alpha\nbeta\nGamma 12\n\nalpha beta\n",
    "data/b.txt": b"beta\nno newline at the end",
    "data/empty": b"",
    "data/one": b"\n",
    "data/.hidden": b"secret\n",
    "data/with space.txt": b"spaced\n",
    "data/star*name": b"star\n",
    "data/binary": b"text\n\x00\x01\x02more\n",
    "data/sub/deep.txt": b"deep alpha\n",
    "data/sub/n1.log": b"10\n9\n2\n",
    "data/dmesg": b"[    0.1] intel-max10 spi2.0: RSU auth result: 8'h00000011\n[    0.2] usb: new\n",
    "data/vars.sh": b"FOO='from file'\nexport FOO\n",
    "data/script.sh": b"echo script $1 $#; exit 4\n",
}

COMMANDS = f"""
cat data/a.txt
cat data/a.txt data/b.txt data/empty
cat nope data/a.txt
cat data
cat data/a.txt/x
cat -n data/a.txt data/b.txt
cat < data/a.txt
cat - data/one < data/b.txt
cat
grep -H '' data/a.txt data/b.txt data/empty data/one
grep -H '' data/*
grep -H '' data/nope* data/a.txt
grep '' data/a.txt
grep -h beta data/a.txt data/b.txt
grep beta data/a.txt data/b.txt
grep -n beta data/a.txt
grep -c beta data/a.txt data/b.txt
grep -l alpha data/*.txt
grep -L alpha data/a.txt data/b.txt
grep -i gamma data/a.txt
grep -v beta data/a.txt
grep -q beta data/a.txt
grep -q zeta data/a.txt
grep zeta data/a.txt
grep -s beta nope data/a.txt
grep -E 'al|ga' data/a.txt
grep 'al\\|Ga' data/a.txt
grep -E '^[a-z]+$' data/a.txt
grep -E '[[:digit:]]{{2}}' data/a.txt
grep '[0-9]\\{{2\\}}' data/a.txt
grep -F 'a.txt' data/a.txt
grep -F '*' data/a.txt
grep -o 'be' data/a.txt
grep -w alpha data/a.txt
grep -x beta data/a.txt
grep -m1 beta data/a.txt
grep -e alpha -e Gamma data/a.txt
grep -r alpha data/sub
grep -rn beta data/sub data/a.txt
grep text data/binary
grep -a text data/binary
grep -H '' data/binary
grep
grep 'a\\(' data/a.txt
grep -E 'm10bmc|intel-max10|n3000bmc' data/dmesg
grep -H '' < data/one
ls data
ls -a data
ls -A data
ls -1 data/sub
ls data/sub data/a.txt nope
ls nope
ls -d data/*
ls data/a.txt data/b.txt
readlink links/rel
readlink links/abs
readlink data/a.txt
readlink -f links/rel data/../data/./a.txt
readlink -f links/dangling
readlink -f nope/nope
readlink -f nope
readlink -e nope
readlink -f links/chain
readlink links/loop
readlink -f links/loop
cat links/chain
cat links/loop
cat links/dangling
readlink
realpath -e nope
sha256sum data/a.txt data/empty
sha256sum nope
sha256sum < data/a.txt
md5sum data/a.txt
stat -c '%s %F' data/a.txt data data/empty links/rel
stat -c %s nope
stat -Lc '%F' links/rel
head -n 2 data/a.txt
head -2 data/a.txt data/b.txt
head -c 3 data/a.txt
head nope
tail -n 2 data/a.txt
tail -1 data/a.txt
tail -n +3 data/a.txt
tail -v -n +1 data/one data/empty data/b.txt data/a.txt
tail -v -n +1 nope data/one nope data data/empty
tail -v -n +1 data/b.txt
head -v -n 1 nope data/a.txt
head -q -n 1 data/a.txt data/b.txt
head data
head -n -1 data/a.txt
head -c -3 data/a.txt
head -n -0 data/a.txt
head -n 0 data/a.txt
tail -n 0 data/a.txt
tail -c 4 data/a.txt
tail -n +0 data/a.txt
head -v -c 1000 nope data/one nope data data/empty data/b.txt
tail -v -n 2 data/one data data/b.txt
find data -name '*.txt' | sort
find data links nope -printf '%y %m %p %l\\n' | sort
find data -maxdepth 1 -type f -printf '%f %s\\0' | wc -c
find data -mindepth 1 -xdev -type d
find links/rel -printf '%y|%p|%l|%d\\n'
find nope
find data -nope
find data -type q
find data -maxdepth
find -name a.txt
find {SECURE}/security -name '*hash' -printf '%y %f\\n' | sort
wc -l data/a.txt
wc data/a.txt data/b.txt
wc -c < data/a.txt
sort data/a.txt
sort -n data/sub/n1.log
sort -r data/a.txt
sort -u data/a.txt data/b.txt
basename data/a.txt .txt
dirname data/a.txt a /x
test -f data/a.txt
test -d data/a.txt
test -e nope
test -s data/empty
test -L links/rel
test -n ""
test a = a -a b = b
test a = b -o b = b
test ! -e nope
[ -d data ]
[ 3 -gt 2 ]
[ x = y ]
[ -d data
echo a   b
echo "a   b"
echo 'single $HOME'
echo "home is $HOME"
echo -n no newline
echo 'back\\tslash'
echo a\\ b
echo "a\\"b"
echo "a\\$b"
echo data/*
echo data/*.txt
echo data/[ab].txt
echo data/[!a].txt
echo data/?.txt
echo data/*/
echo data/nope*
echo "data/*.txt"
echo data/"*".txt
echo data/star\\*name
echo data/.h*
echo d*/s*/d*
echo */*.txt
echo *
echo ~
echo ~/x "~"
echo {{a,b}}
printf 'x%sy\\n' 1 2
printf '%d-%s\\n' 5 five
printf 1
true && echo yes
false && echo no
false || echo or
true || echo no; echo end
false; echo $?
! true; echo $?
nope; echo $?
nope
./nope
data/a.txt
data
echo one; echo two
echo one & wait
echo a | cat
cat data/a.txt | grep beta | wc -l
echo x | cat - data/one
cat data/a.txt | head -1
false | true; echo $?
true | false; echo $?
(echo sub; exit 3); echo $?
{{ echo group; echo more; }} > out; cat out
(cd data; pwd | grep -c data); ls out nope 2>/dev/null
cd data && ls sub
cd nope
cd nope; echo $?
cd data/a.txt; echo $?
echo hi > out; cat out; rm out
echo 1 > out; echo 2 >> out; cat out
echo hi > nope/out
echo hi > data
cat < nope
cat < nope; echo after $?
cat nope 2>/dev/null
cat nope 2>&1
cat nope data/one > out 2>&1; cat out
ls nope 2> out; cat out
echo err >&2
echo err 1>&2 2>/dev/null
ls nope 2>&0 < data/one; echo $?
nope 2>&0 < data/one; echo $?
echo y < data/one >&0; echo $?
printf y < data/one >&0; echo $?
cat data/one < data/a.txt >&0
ls data < data/a.txt >&0
grep beta data/a.txt < data/one >&0
cat > out <&1
> out; ls out
2>/dev/null cat nope; echo $?
A=b; echo $A ${{A}}c "$A" '$A'
A=b env | grep '^A='
A=1 B=2; echo $A$B
A='x y'; echo $A "$A"; ls $A
A="  lead trail  "; echo $A; echo "$A"
A=data/*; echo $A "$A"
A=; echo "[$A]" [${{A:-default}}] [${{A-unset}}] [${{A:+set}}]
echo ${{UNSET:-fallback}} ${{UNSET-x}} [${{UNSET+y}}]
echo "$(cat data/one)x$(echo a b)"
echo $(echo a; echo b)
echo `echo back`
x=$(cat nope); echo $? [$x]
for i in a b "c d"; do echo "<$i>"; done
for f in data/*.txt; do echo $f; done
for i in 1 2 3; do if [ $i = 2 ]; then continue; fi; echo $i; done
for i in 1 2 3; do [ $i = 2 ] && break; echo $i; done
if true; then echo t; else echo f; fi
if false; then echo t; elif true; then echo e; else echo f; fi
i=x; while [ $i != xxx ]; do echo $i; i=x$i; done
until true; do echo never; done; echo $?
sh -c 'echo inner'
sh -c 'echo $0 $1' name arg
sh -c 'exit 7'; echo $?
sh data/script.sh one two; echo $?
sh nope
exec echo replaced; echo never
exec nope; echo never
exec 2>/dev/null; cat nope; echo $?
exit 5
exit 5; echo never
. ./data/vars.sh; echo $FOO; env | grep FOO
. ./nope; echo never
export X=1; sh -c 'echo $X'
Y=1; sh -c 'echo [$Y]'
eval 'echo evaluated'
set -- a b c; echo $# $1 "$@"
set -- a b c; shift; echo $*
echo a b c | (read x y; echo $y $x)
printf 'a b\\nc\\n' | (IFS= read -r x; echo "$x"; read -r y; echo "$y")
printf 'echo one\\nexit 3\\ncat\\n' | while IFS= read -r line; do (eval "$line") </dev/null; echo $?; done
X=1; X=2 true; echo $X; Y=3 true; echo "<$Y>"
command -v nope; echo $?
kill -0 $$; echo $?
kill 999999
kill -NOSIG 1
mkdir new && ls -d new && rmdir new
mkdir data
mkdir -p new/a/b && ls new/a && rm -r new
mkdir nope/x
rm nope
rm -f nope; echo $?
rm data/sub
rm
rmdir data
touch new.txt && wc -c new.txt && rm new.txt
touch nope/x
mv data/one moved && cat moved && mv moved data/one
mv nope x
cp data/a.txt copied && cat copied && rm copied
echo tee | tee t1 t2 && cat t1 t2 && rm t1 t2
flock -n lock echo locked; ls lock
flock -n lock flock -n -E 75 lock true; echo $?
flock -F -n -E 75 lock sh -c 'flock -n -E 75 lock true; echo $?'
flock -n lock false; echo $?
flock -n lock sh -c 'exit 9'; echo $?
flock -s lock flock -s -n lock echo shared
flock -s lock flock -n -E 75 lock true; echo $?
flock nope/lock true; echo $?
flock -n lock nope; echo $?
flock lock
env nope; echo $?
date -u +%Y | grep -c '^20'
uname -s
# a comment
echo a # comment
echo a#b
echo 'multi
line'
echo one \\
two
echo "unterminated
echo 'unterminated
if true
for i in a
echo a | | echo b
&& echo
echo )
grep -H '' {SECURE}/security/*_canceled_csks {SECURE}/security/flash_count
grep -H '' {SECURE}/security/* {SECURE}/firmware/secure-update*/{{status,error}} {SECURE}/firmware/*/error
grep -H '' sys/bus/pci/devices/0000:b2:00.0/uevent sys/bus/pci/devices/0000:b3:00.9/uevent
grep -H '' sys/bus/pci/devices/*/vendor
readlink sys/bus/platform/drivers/intel-m10bmc-sec-update/*.auto
readlink -f sys/bus/platform/drivers/intel-m10bmc-sec-update/*.auto
ls sys/bus/platform/drivers/intel-m10bmc-sec-update/*.auto/security
ls sys/bus/pci/devices
cat sys/bus/platform/drivers/intel-m10bmc-sec-update/*.auto/security/flash_count
cat sys/bus/pci/devices/*/device | sort -u
echo sys/bus/pci/devices/*/fpga_region/region*/dfl-fme.*/bitstream_id
"""


def _commands() -> list[str]:
    """Split at newlines that no quote or backslash holds."""
    found: list[str] = []
    for line in COMMANDS.strip("\n").split("\n"):
        if found and (found[-1].endswith("\\") or found[-1] == "echo 'multi"):
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return found


def _export(files: Vfs, path: str, target: Path) -> None:
    """Write the readable part of ``files`` below ``path`` to the real directory ``target``."""
    for name in files.listdir(path):
        node = files.node(f"{path}/{name}", follow=False)
        place = target / name
        if isinstance(node, Directory):
            place.mkdir()
            _export(files, f"{path}/{name}", place)
        elif isinstance(node, Link):
            place.symlink_to(node.target)
        elif isinstance(node, Regular):
            place.write_bytes(bytes(node.data))
        elif isinstance(node, Attribute) and node.show is not None:
            place.write_bytes(node.text())
        elif isinstance(node, Attribute):
            files.remove_tree(f"{path}/{name}")  # write-only: root may read a real file of that mode


@pytest.fixture
def tree(console: Any, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Any, Path]:
    """The same tree twice: in the emulated host below ``/``, and in a real directory."""
    files = console.host.vfs
    for path, data in FILES.items():
        files.write(f"/{path}", data)
    for name, target in {
        "rel": "../data/a.txt",
        "abs": "/nowhere/at/all",
        "dangling": "gone",
        "loop": "loop",
        "chain": "rel",
    }.items():
        files.place(f"/links/{name}", Link(target))
    for name in ("bin", "sbin", "dev", "etc", "opt", "proc", "root", "run", "tmp", "usr", "var"):
        if name not in ("bin", "usr"):
            files.remove_tree(f"/{name}")
    files.place("/dev/null", Device())
    real = tmp_path / "tree"
    real.mkdir()
    for name in ("data", "links", "sys"):
        (real / name).mkdir()
    _export(files, "/data", real / "data")
    _export(files, "/links", real / "links")
    if "sys" in request.node.callspec.params["command"]:  # hundreds of files
        _export(files, "/sys", real / "sys")
    return console, real


#: What stands at the top of the emulated root besides the exported tree.
EXTRA_AT_ROOT = ("bin", "dev", "usr")


@pytest.mark.parametrize("command", _commands())
def test_a_command_says_and_does_the_same_as_on_the_real_machine(tree: Any, command: str) -> None:
    if command.startswith("flock") and shutil.which("flock") is None:
        pytest.skip("this machine has no flock")
    console, real = tree
    for name in EXTRA_AT_ROOT:
        (real / name).mkdir()
    result = console.run_sh(command, stdin=b"from stdin\n")
    expected = subprocess.run(
        ["/bin/sh", "-c", command],
        executable="/bin/sh",
        cwd=real,
        input=b"from stdin\n",
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": "/root", "LC_ALL": "C"},
        timeout=20,
    )

    def text(data: bytes) -> str:
        plain = data.decode(errors="replace").replace(str(real.resolve()), "").replace("/usr/bin/", "")
        return plain.replace("/bin/sh: ", "sh: ")

    assert (result.code, result.out, result.err) == (
        expected.returncode,
        text(expected.stdout),
        text(expected.stderr),
    )
