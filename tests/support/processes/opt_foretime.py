"""Foretime in /opt/foretime of a test's own namespaces, as pip would have put it there.

It is a virtual environment that sees the packages of the one that runs the tests, so that nothing
is built or downloaded. Neither it nor its Python is in anybody's home.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from tests.support.processes.own_namespaces import OwnNamespaces

PREFIX = "/opt/foretime"
_REPOSITORY = Path(__file__).resolve().parents[3]
_SCRIPT = """\
#!/opt/foretime/bin/python
import sys
from foretime_sidecar.cli import main
sys.exit(main())
"""
# $1: Python's prefix; $2: where its packages are; $3: the program; the rest: folders in root's home
# that are needed.
_MAKE = """\
set -e
base=$1 packages=$2 script=$3; shift 3
mkdir /run/seen
for path; do mkdir -p "/run/seen$path"; mount --bind "$path" "/run/seen$path"; done
mount -t tmpfs -o mode=0755 opt /opt
case $base in
  /usr) ;;
  *) mkdir /opt/python; mount --bind "$base" /opt/python; base=/opt/python ;;
esac
mount -t tmpfs -o mode=0755 root /root
for path; do mkdir -p "$path"; mount --bind "/run/seen$path" "$path"; done
"$base/bin/python3" -m venv --without-pip /opt/foretime
for site in /opt/foretime/lib/python3*/site-packages; do
  echo "import site; site.addsitedir('$packages')" >"$site/foretime.pth"
done
printf %s "$script" >/opt/foretime/bin/foretime
chmod 755 /opt/foretime/bin/foretime
"""


def install_as_wheel(namespaces: OwnNamespaces) -> None:
    """Put it there; /run must be the namespaces' own.

    Raises
    ------
    RuntimeError
        If it can't be done.
    """
    packages = sysconfig.get_path("purelib")
    # Where Python was built to be are its libraries.
    needed = [str(_REPOSITORY), str(Path(sys.prefix).resolve()), sys.base_prefix]
    homes = [path for path in needed if path.startswith("/root/")]
    script = ["sh", "-c", _MAKE, "sh", sys.base_prefix, packages, _SCRIPT, *homes]
    done = namespaces.run(script)
    if done.returncode:
        raise RuntimeError(f"no Foretime in {PREFIX}: {done.stdout}{done.stderr}")
