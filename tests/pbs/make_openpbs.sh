#!/bin/bash
# Builds and installs OpenPBS for tests/pbs, which takes 4 to 12 minutes.
#
#   make_openpbs.sh        (from $FORETIME_OPENPBS, or ../shared/openpbs beside the repository;
#                           kept in $FORETIME_PBS_CACHE, or /var/cache/foretime-pbs)
#
# Does nothing but look for Debian's packages if this source is built already. Where programs are
# is compiled in, so they are installed to where they stay; the file `whole` says that all is there.
# Nothing of PBS or its database is ever started here. Exit code 3: there is no source, or no root.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
SOURCE=${FORETIME_OPENPBS:-$HERE/../shared/openpbs}
CACHE=${FORETIME_PBS_CACHE:-/var/cache/foretime-pbs}
PREFIX=$CACHE/openpbs
TO_RUN="acl iproute2 procps postgresql libpq-dev libical3 libhwloc15 libcjson1 libedit2 libpython3-dev openssh-client"
TO_BUILD="gcc g++ make autoconf automake libtool pkg-config swig perl libhwloc-dev libx11-dev libxt-dev
  libxext-dev libxft-dev libedit-dev libical-dev libncurses-dev libpq-dev postgresql-server-dev-all
  python3 python3-dev tcl-dev tk-dev libexpat1-dev libssl-dev libcjson-dev zlib1g-dev expat xz-utils"

say() { echo "make_openpbs.sh: $*" >&2; }

install_packages() { # those that are missing, and nothing of theirs is started
  local missing=() package policy=/usr/sbin/policy-rc.d
  for package in "$@"; do
    dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
      missing+=("$package")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  if [ -e $policy ]; then policy=; else printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy; fi
  local status=0
  apt-get -o DPkg::Lock::Timeout=600 update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 \
      install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || status=$?
  [ -z "$policy" ] || rm -f "$policy"
  return "$status"
}

if [ "$(id -u)" != 0 ]; then
  say "only root can install OpenPBS"
  exit 3
fi
tarball=$SOURCE/openpbs-src.tar.xz
if [ -r "$tarball" ]; then
  version=$(sha256sum "$tarball" | cut -d' ' -f1)
elif [ -e "$PREFIX/whole" ]; then
  version=$(cat "$PREFIX/whole")
else
  say "no OpenPBS source at $tarball: put it there, or name its folder in FORETIME_OPENPBS"
  exit 3
fi
# shellcheck disable=SC2086
install_packages $TO_RUN
if [ -e "$PREFIX/whole" ] && [ "$(cat "$PREFIX/whole")" = "$version" ]; then
  exit 0
fi
# shellcheck disable=SC2086
install_packages $TO_BUILD

export PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin # hooks run in the python3 found here
mkdir -p "$CACHE"
exec 9>"$CACHE/lock"
flock 9 # a second one waits, and finds all done
if [ -e "$PREFIX/whole" ] && [ "$(cat "$PREFIX/whole")" = "$version" ]; then
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xf "$tarball" -C "$work" --strip-components=1
rm -rf "$PREFIX"
(
  cd "$work"
  ./autogen.sh
  ./configure --prefix="$PREFIX" CFLAGS="-O1 -g0 -w"
  make -s -j2
  make -s install
) >"$work/log" 2>&1 || {
  tail -n 50 "$work/log" >&2
  say "OpenPBS could not be built"
  exit 1
}
find "$PREFIX"/{bin,sbin,lib} -type f -exec sh -c \
  'for file; do head -c4 "$file" | grep -q ELF && strip --strip-unneeded "$file"; done; true' sh {} +
chmod 4755 "$PREFIX/sbin/pbs_iff" "$PREFIX/sbin/pbs_rcp"
echo "$version" >"$PREFIX/whole.new"
mv "$PREFIX/whole.new" "$PREFIX/whole"
