#!/bin/sh
# Makes a Debian root for packages to be built or tested in.
#
#   make_root.sh SUITE          (bookworm, trixie) a service node: Python and systemd, no compiler
#   make_root.sh SUITE-build    the same with Python's headers, ccache and rpmbuild
#   make_root.sh SUITE-slurm    a service node with Debian's Slurm and its accounting
#
# Prints its folder. Kept in $FORETIME_ROOTS; does nothing if it is there: delete it to have it made
# anew. The packages come from where this machine's come from. Nothing in a root is started by its
# packages' scripts.
set -eu

NAME=$1
SUITE=${NAME%-*}
CACHE=${FORETIME_ROOTS:-/var/cache/foretime-roots}
ROOT=$CACHE/$NAME

if [ -e "$ROOT/usr/sbin/policy-rc.d" ]; then
  echo "$ROOT"
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "make_root.sh: only root can make a root" >&2
  exit 2
fi
for program in debootstrap apt-get unshare; do
  command -v "$program" >/dev/null || {
    echo "make_root.sh: no $program: apt-get install debootstrap util-linux" >&2
    exit 2
  }
done
mirror() {
  apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1
}
MIRROR=$(mirror)
if [ -z "$MIRROR" ]; then
  apt-get update -qq
  MIRROR=$(mirror)
fi

mkdir -p "$CACHE"
WORK=$(mktemp -d "$CACHE/$NAME.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
chmod 755 "$WORK"
packages=python3,systemd,systemd-sysv,mandoc
slurm=
case $NAME in
*-build) packages=$packages,python3-dev,ccache,rpm ;;
*-slurm) slurm="slurmctld slurmd slurm-client slurm-wlm-basic-plugins slurmdbd slurm-wlm-mysql-plugin
  mariadb-server munge" ;;
esac
debootstrap --variant=minbase --include="$packages" "$SUITE" "$WORK" "$MIRROR" >&2
printf '#!/bin/sh\nexit 101\n' >"$WORK/usr/sbin/policy-rc.d"
chmod 755 "$WORK/usr/sbin/policy-rc.d"
if [ -n "$slurm" ]; then
  for setting in /etc/apt/apt.conf.d/*proxy* /etc/apt/apt.conf; do
    if [ -r "$setting" ]; then cp "$setting" "$WORK/etc/apt/apt.conf.d/"; fi
  done
  # shellcheck disable=SC2086
  chroot "$WORK" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends $slurm >&2
fi
rm -rf "$WORK"/var/cache/apt/archives/*.deb "$WORK"/var/lib/apt/lists/*
mv "$WORK" "$ROOT"
echo "$ROOT"
