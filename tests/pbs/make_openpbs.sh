#!/bin/bash
# Builds and installs OpenPBS for tests/pbs, which takes 4 to 12 minutes.
#
#   make_openpbs.sh        (from $FORETIME_OPENPBS, or ../shared/openpbs beside the repository;
#                           kept in $FORETIME_PBS_CACHE, or /var/cache/foretime-pbs)
#
# Does nothing but look for Debian's packages if this source is built already. Nothing of PBS or its
# database is ever started here. Exit code 3: there is no source, or no root.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
SOURCE=${FORETIME_OPENPBS:-$HERE/../shared/openpbs}
PREFIX=${FORETIME_PBS_CACHE:-/var/cache/foretime-pbs}/openpbs
TO_RUN="acl iproute2 procps postgresql libpq-dev libical3 libhwloc15 libcjson1 libedit2 libpython3-dev openssh-client"
TO_BUILD="gcc g++ make autoconf automake libtool pkg-config swig perl libhwloc-dev libx11-dev libxt-dev
  libxext-dev libxft-dev libedit-dev libical-dev libncurses-dev libpq-dev postgresql-server-dev-all
  python3 python3-dev tcl-dev tk-dev libexpat1-dev libssl-dev libcjson-dev zlib1g-dev expat xz-utils"
. "$HERE/tests/support/build_once.sh"

build_and_install() { # hooks run in the python3 of the PATH that build_once sets
  ./autogen.sh &&
    ./configure --prefix="$PREFIX" CFLAGS="-O1 -g0 -w" &&
    make -s -j2 &&
    make -s install &&
    chmod 4755 "$PREFIX/sbin/pbs_iff" "$PREFIX/sbin/pbs_rcp"
}

build_once "$SOURCE/openpbs-src.tar.xz" "$PREFIX" OpenPBS FORETIME_OPENPBS
