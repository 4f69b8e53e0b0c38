"""The .rpm put into a root by ``rpm --root``, and out: no RPM distribution can be had here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packages.package_root import PackageRoot, assert_locked, built

pytestmark = pytest.mark.packages

# But for the database, which Debian's rpm keeps there.
FILES = "find /target -xdev -path '*/.rpmdb' -prune -o -print | sort"
# systemd's tools look into it; it goes with the namespace of one run.
PROC = "mount -t proc proc /target/proc; "


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> PackageRoot:
    """A root with rpm, and below /target a Debian with the .rpm in it: its Python is 3.11, too.

    Debian's packages are none of rpm's, so what the .rpm requires is not looked for.
    """
    rpm = built("foretime-*.x86_64.rpm")
    root = PackageRoot("bookworm-build", tmp_path_factory.mktemp("rpm"))
    root.run(
        "mkdir /target; cd /; tar --one-file-system -c bin etc lib lib64 opt root sbin usr var"
        " | tar -x -C /target; mkdir /target/dev /target/proc /target/run /target/tmp\n"
        f"mknod -m 666 /target/dev/null c 1 3; {FILES} > /before\n"
        f"{PROC} rpm --root /target --nodeps -i /dist/{rpm.name} > /said 2>&1"
    )
    return root


def test_its_command_runs(root: PackageRoot, tmp_path: Path) -> None:
    root = root.layer(tmp_path)
    said = root.run("cat /said")
    assert "nothing is started" in said
    assert "scriptlet failed" not in said
    assert "foretime " in root.run("chroot /target foretime --version")
    example = "/usr/share/doc/foretime/examples/foretime.toml"
    assert "good" in root.run(f"chroot /target foretime config check {example}")
    assert "foretime" in root.run("chroot /target getent passwd foretime")
    assert not root.run("rpm --root /target -V --nodeps foretime")
    needed = root.run("rpm --root /target -q --requires foretime").splitlines()
    assert {"python3.11", "systemd", "glibc >= 2.28"} <= set(needed)
    assert not [name for name in needed if ".so" in name]


def test_it_ships_what_is_locked(root: PackageRoot, tmp_path: Path) -> None:
    assert_locked(root.layer(tmp_path), "bookworm", "/target")


def test_removal_leaves_no_file_of_its_own(root: PackageRoot, tmp_path: Path) -> None:
    root = root.layer(tmp_path)
    root.run("chroot /target foretime --version; echo '# mine' > /target/etc/foretime/mine.toml")
    said = root.run(f"{PROC} rpm --root /target -e foretime")
    assert "scriptlet failed" not in said
    assert "Only foretime uninstall slurm (or pbs) takes it out" in said
    left = set(root.run(f"{FILES} | comm -13 /before -").split())
    left = {name.removeprefix("/target") for name in left}
    backups = {f"/etc/{name}-" for name in ("passwd", "group", "shadow", "gshadow")}
    folders = {"/etc/foretime", "/var/lib/foretime", "/var/lib/foretime/table"}
    assert left - backups - {"/etc/.pwd.lock"} == folders | {"/etc/foretime/mine.toml"}
