"""The .deb on a Debian that has only Slurm: the guide leads to a user's answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.packages.package_root import NUMBERS, REPOSITORY, PackageRoot, built
from tests.support.guide_page import MOST_COMMANDS, MOST_S, commands_of

pytestmark = pytest.mark.packages

SUITE = "bookworm"
GUIDE = REPOSITORY / "docs/install_slurm.md"
HOSTS = "127.0.0.1 head localhost\n"
SLURM = """
ClusterName=lab
SlurmctldHost=head(127.0.0.1)
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
PriorityType=priority/multifactor
SlurmdParameters=config_overrides
NodeName=head CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60 State=UP
"""
ACCOUNTING = """
DbdHost=localhost
DbdAddr=127.0.0.1
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
"""
# Slurm asks for addresses as if only those of a network counted (AI_ADDRCONFIG), and there is none.
ADDRESS = """
import fcntl, socket, struct
address = struct.pack("16sH2x4s8x", b"lo:1", socket.AF_INET, socket.inet_aton("192.0.2.1"))
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8916, address)  # SIOCSIFADDR
"""
SITE = f"""
python3 - <<'END'{ADDRESS}END
tried() {{ for _ in $(seq 300); do if "$@"; then return; fi; sleep 0.5; done; false; }}
systemctl start munge mariadb
mysql -e "CREATE DATABASE slurm_acct_db; CREATE USER slurm@localhost IDENTIFIED VIA unix_socket;
  GRANT ALL ON slurm_acct_db.* TO slurm@localhost"
systemctl start slurmdbd
tried sacctmgr --immediate add cluster lab
systemctl start slurmctld slurmd
useradd alice
tried sacctmgr --immediate add account physics
sacctmgr --immediate add user alice account=physics
tried sh -c 'sinfo --noheader --format=%T | grep idle'
"""
QUESTION = """
cd /tmp
runuser -u alice -- sbatch --ntasks=2 --time=10 --wrap='sleep 300'
job=$(runuser -u alice -- sbatch --parsable --ntasks=2 --time=10 --wrap='sleep 300')
tried runuser -u alice -- foretime wait $job
! journalctl --no-pager --unit=foretime | grep Traceback
systemctl is-active foretime foretime-watchdog.timer slurmctld
echo 'all done'
"""


@pytest.fixture
def root(tmp_path: Path) -> PackageRoot:
    root = PackageRoot(f"{SUITE}-slurm", tmp_path)
    files = {
        "etc/hostname": "head\n",
        "etc/hosts": HOSTS,
        "etc/slurm/slurm.conf": SLURM,
        # Nothing here uses cgroups; what a kernel has of them is not looked at then.
        "etc/slurm/cgroup.conf": "CgroupPlugin=cgroup/v1\n",
        "etc/slurm/slurmdbd.conf": ACCOUNTING,
    }
    root.run("systemctl disable --quiet munge mariadb slurmdbd slurmctld slurmd")
    for name, text in files.items():
        root.path(name).parent.mkdir(parents=True, exist_ok=True)
        root.path(name).write_text(text)
    root.run("chown slurm /etc/slurm/slurmdbd.conf && chmod 600 /etc/slurm/slurmdbd.conf")
    return root


def test_the_guide_leads_from_a_working_slurm_to_an_answer(root: PackageRoot) -> None:
    deb = built(f"foretime_*~deb{NUMBERS[SUITE]}_amd64.deb")
    observe = [line for heading, line in commands_of(GUIDE) if heading == "Observe"]
    needed = observe[: observe.index("foretime install slurm --yes") + 1]
    assert len(needed) + 1 <= MOST_COMMANDS, "with the one that gets the package"
    # Its first line in the guide, where there is no network to ask for what it depends on.
    steps = [f"dpkg --install /dist/{deb.name}", *needed, "cut -d ' ' -f 1 /proc/uptime"]
    said = root.boot(
        "\n".join([SITE, "cut -d ' ' -f 1 /proc/uptime", *steps, *observe, QUESTION]), 900
    )
    assert said.rstrip().endswith("all done"), said
    begin, end = map(float, re.findall(r"^(\d+\.\d+)$", said, re.MULTILINE))
    print(f"{len(needed) + 1} commands from Slurm to observe, {end - begin:.0f} s")
    assert end - begin <= MOST_S
    assert "nothing to do" in said.rpartition("+ foretime install slurm --yes")[2]
    assert re.search(r"^mode +observe", said, re.MULTILINE)
    assert re.search(r"^sure +starts within", said, re.MULTILINE)
