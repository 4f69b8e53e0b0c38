#!/bin/sh
# Makes a Debian tree that holds a newer Slurm than the machine's own, for tests/slurm.
#
#   make_slurm_tree.sh [SUITE]     (forky; kept in $FORETIME_SLURM_CACHE/SUITE)
#
# Does nothing if the tree is there; delete it to have it made anew. The packages come from where
# this machine's come from. Nothing in the tree is ever started by its package's scripts.
set -eu

SUITE=${1:-forky}
CACHE=${FORETIME_SLURM_CACHE:-/var/cache/foretime-slurm}
TREE=$CACHE/$SUITE
PACKAGES="slurm-wlm slurmctld slurmd slurm-client slurm-wlm-basic-plugins slurm-wlm-jwt-plugin
  slurmrestd slurmdbd slurm-wlm-mysql-plugin munge"

if [ -x "$TREE/usr/sbin/slurmctld" ]; then
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "make_slurm_tree.sh: only root can make a tree" >&2
  exit 2
fi
for program in debootstrap apt-get; do
  command -v "$program" >/dev/null || {
    echo "make_slurm_tree.sh: no $program: apt-get install debootstrap" >&2
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

# Unstable has no Release.gpg of a suite that an older debootstrap knows, but its script serves all.
mkdir -p "$CACHE"
WORK=$(mktemp -d "$CACHE/$SUITE.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
chmod 755 "$WORK"
debootstrap --variant=minbase "$SUITE" "$WORK" "$MIRROR" sid
printf '#!/bin/sh\nexit 101\n' >"$WORK/usr/sbin/policy-rc.d"
chmod 755 "$WORK/usr/sbin/policy-rc.d"
for setting in /etc/apt/apt.conf.d/*proxy* /etc/apt/apt.conf; do
  if [ -r "$setting" ]; then cp "$setting" "$WORK/etc/apt/apt.conf.d/"; fi
done
# shellcheck disable=SC2086
chroot "$WORK" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends $PACKAGES
chroot "$WORK" apt-get clean
mv "$WORK" "$TREE"
