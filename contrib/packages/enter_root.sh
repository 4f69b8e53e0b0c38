#!/bin/sh
# Runs a command in a Debian root that it can't change, in namespaces of its own and without a network.
#
#   enter_root.sh ROOT WORK [FROM:TO ...] -- COMMAND...
#
# What the command writes goes into WORK/upper, and a second command with the same WORK finds it there;
# ROOT may be several folders, UPPER:LOWER. FROM is mounted at TO. Mounts and processes that are left end
# with the command, which may be /lib/systemd/systemd.
set -eu

if [ "${FORETIME_IN_NAMESPACE:-}" != yes ]; then
  FORETIME_IN_NAMESPACE=yes exec \
    unshare --mount --uts --ipc --net --cgroup --pid --fork --kill-child -- "$0" "$@"
fi
root=$1 work=$2
shift 2
mkdir -p "$work/upper" "$work/work" "$work/root"
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$root,upperdir=$work/upper,workdir=$work/work" "$work/root"
cd "$work/root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
# Only systemd needs it, and says so.
mount -t cgroup2 cgroup2 sys/fs/cgroup || true
for folder in dev run tmp; do
  mount -t tmpfs tmpfs $folder
done
chmod 1777 tmp
mkdir dev/shm dev/pts
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
for device in null zero full random urandom tty; do
  touch dev/$device
  mount --bind /dev/$device dev/$device
done
touch dev/console
mount --bind /dev/null dev/console
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
while [ "$1" != -- ]; do
  mkdir -p ".${1#*:}"
  mount --bind "${1%%:*}" ".${1#*:}"
  shift
done
shift
# systemd asks for `container`.
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 container=foretime \
  DEBIAN_FRONTEND=noninteractive PYTHONDONTWRITEBYTECODE=1 chroot . "$@"
