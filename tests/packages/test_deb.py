"""The .deb in clean Debian roots: it brings a daemon, and leaves nothing but what is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.packages.package_root import NUMBERS, SUITES, PackageRoot, assert_locked, built

pytestmark = pytest.mark.packages

# The daemon's user has no Slurm here: its daemon says so, and answers all the same.
DAEMON = """
install -D -m 644 /usr/share/doc/foretime/examples/foretime.toml /etc/foretime/foretime.toml
install -d -o foretime /run/foretime
setpriv --reuid foretime --regid foretime --init-groups foretime serve > /var/log/daemon 2>&1 &
for _ in $(seq 60); do
  if foretime status | grep "^daemon *starting"; then break; fi
  sleep 1
done
kill $! || true
wait $! || echo "ended with $?"
cat /var/log/daemon
"""
FILES = "find / -xdev -path /var/lib/dpkg -prune -o -print | sort"


@pytest.fixture(scope="module", params=SUITES)
def suite(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def deb(suite: str) -> Path:
    return built(f"foretime_*~deb{NUMBERS[suite]}_amd64.deb")


@pytest.fixture(scope="module")
def installed(suite: str, deb: Path, tmp_path_factory: pytest.TempPathFactory) -> PackageRoot:
    root = PackageRoot(suite, tmp_path_factory.mktemp(suite))
    root.run(FILES + " > /before")
    said = root.run(f"dpkg -i /dist/{deb.name}")
    assert "nothing is started" in said
    return root


@pytest.fixture
def root(installed: PackageRoot, tmp_path: Path) -> PackageRoot:
    return installed.layer(tmp_path)


def test_it_runs_without_a_compiler_and_what_simulations_need(root: PackageRoot) -> None:
    assert not re.search("/(cc|c[+][+]|gcc|clang)\n", root.run("ls /usr/bin/*"))
    assert re.fullmatch(r"foretime \d+\.\d+\S*\n", root.run("foretime --version"))
    assert "wait" in root.run("foretime --help")
    missing = root.run("foretime replay --generate lublin2003 --jobs 50", fails=True)
    assert "pip install 'foretime[sim]'" in missing
    packages = root.run("ls /opt/foretime/lib/python3*/site-packages")
    assert not re.search("^(pandas|matplotlib|lupa)$", packages, re.MULTILINE)
    example = "/usr/share/doc/foretime/examples/foretime.toml"
    assert root.run(f"foretime config check {example}") == f"{example}: good\n"
    shipped = "from foretime_sidecar.install.contrib_files import contrib_file as f; print(f('{}'))"
    unit = shipped.format("systemd/foretime.service.d/pbs.conf")
    assert root.run(f'/opt/foretime/bin/python -c "{unit}"').startswith("/opt/foretime/share/")
    assert "foretime.lua" in root.run("ls /opt/foretime/share/foretime/plugin/slurm")


def test_it_ships_what_is_locked(root: PackageRoot, suite: str) -> None:
    assert_locked(root, suite)
    built("foretime-*.cdx.json")


def test_modules_of_a_user_do_not_reach_it(root: PackageRoot) -> None:
    root.run("mkdir /poison; echo 'raise SystemExit(9)' | tee /poison/typer.py /poison/numpy.py")
    assert "foretime" in root.run("PYTHONPATH=/poison PYTHONHOME=/poison foretime --version")


def test_only_root_may_write_into_it(root: PackageRoot) -> None:
    assert not root.run("find /opt/foretime -not -type l -perm /022")
    assert not root.run("find /opt/foretime -not -user root")
    owners = root.run("stat -c '%U %a' /var/lib/foretime /var/lib/foretime/table /etc/foretime")
    assert owners.splitlines() == ["foretime 750", "foretime 750", "root 755"]


def test_units_pages_and_completion_are_good(root: PackageRoot) -> None:
    units = "/usr/lib/systemd/system/foretime*"
    assert not root.run(f"systemd-analyze verify {units} 2>&1 | grep -i foretime || true")
    pages = "/usr/share/man/man1/foretime*.1.gz"
    root.run(f"for page in {pages}; do zcat $page | mandoc -T lint -W error; done")
    assert "Nodes." in root.run("zcat /usr/share/man/man1/foretime-wait.1.gz | mandoc")
    completed = root.run(
        """bash -c '. /usr/share/bash-completion/completions/foretime
        COMP_WORDS=(foretime wa) COMP_CWORD=1
        _foretime_completion foretime
        echo "${COMPREPLY[@]}"'"""
    )
    assert set(completed.split()) == {"wait", "watchdog"}


def test_the_daemon_starts_without_systemd(root: PackageRoot) -> None:
    absent = root.run("foretime serve", fails=True)
    said = root.run(DAEMON)
    assert "no settings file" in absent
    assert "\ndaemon   starting" in f"\n{said}", said
    assert "can't run sdiag" in said


def test_systemd_starts_it_and_removal_stops_it(root: PackageRoot, deb: Path) -> None:
    root.run("cp /usr/share/doc/foretime/examples/foretime.toml /etc/foretime/")
    root.run(f"cp /dist/{deb.name} /foretime.deb")
    said = root.boot(
        """
        systemctl is-active foretime || true
        systemctl enable --now foretime foretime-watchdog.timer
        for _ in $(seq 60); do
          if foretime status | grep '^daemon *starting'; then break; fi
          sleep 1
        done
        before=$(systemctl show -P MainPID foretime)
        dpkg -i /foretime.deb
        after=$(systemctl show -P MainPID foretime)
        systemctl is-active foretime foretime-watchdog.timer
        [ "$before" != "$after" ] && [ "$after" != 0 ] && echo 'restarted'
        dpkg -r foretime
        systemctl list-units --all --no-legend 'foretime*'
        ! stat -c %U /proc/[0-9]* | grep foretime
        ls /etc/systemd/system/*.wants
        echo 'done'
        """
    )
    assert said.rstrip().endswith("done"), said
    assert "\ndaemon   starting" in said
    assert "\nrestarted\n" in said
    assert "foretime: the daemon is stopped" in said
    assert "foretime" not in said.rpartition("ls /etc/systemd/system/")[2], said


def test_removal_leaves_settings_and_state_alone(root: PackageRoot) -> None:
    root.run("echo '# mine' > /etc/foretime/foretime.toml; touch /var/lib/foretime/a.sqlite")
    said = root.run("dpkg -r foretime; dpkg -P foretime")
    assert "foretime uninstall slurm" in said
    assert "/etc/foretime has files, and stays" in said
    assert "/var/lib/foretime has files, and stays" in said
    assert root.run("cat /etc/foretime/foretime.toml") == "# mine\n"


def test_purge_leaves_no_file(root: PackageRoot) -> None:
    root.run("foretime --version; foretime status || true; dpkg -P foretime")
    left = root.run(f"{FILES} | comm -13 /before -").split()
    # The daemon's user stays: its number may stand in files.
    allowed = {"/before", "/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-"}
    allowed |= {"/etc/.pwd.lock", "/etc/subuid-", "/etc/subgid-", "/dist", "/packages"}
    assert not set(left) - allowed
    assert "foretime" in root.run("getent passwd foretime")


def test_no_library_asks_for_a_newer_glibc(installed: PackageRoot) -> None:
    libraries = [*installed.path("opt/foretime").rglob("*.so*")]
    assert len(libraries) > 10
    for library in libraries:
        asked = re.findall(rb"GLIBC_2\.(\d+)", library.read_bytes())
        assert max(map(int, asked), default=0) <= 28, library
