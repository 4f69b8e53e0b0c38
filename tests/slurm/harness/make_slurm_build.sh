#!/bin/bash
# Builds Slurm 25.11, which no Debian has, and pyslurm for it, for tests/slurm: 4 to 8 minutes.
#
#   make_slurm_build.sh [PYTHON]   (from $FORETIME_SLURM2511, or ../shared/slurm2511 beside the
#                                   repository; kept in $FORETIME_SLURM_CACHE/25.11, by default in
#                                   /var/cache/foretime-slurm)
#
# pyslurm is made for PYTHON (.venv/bin/python), and put into the build's folder `pyslurm`, so that
# no other environment has it. Does nothing but look for Debian's packages if all is built already.
# Nothing of Slurm is ever started here. Exit code 3: there is no source, or no root.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
PYTHON=${1:-$HERE/.venv/bin/python}
SOURCE=${FORETIME_SLURM2511:-$HERE/../shared/slurm2511}
PREFIX=${FORETIME_SLURM_CACHE:-/var/cache/foretime-slurm}/25.11
PYSLURM=25.11.2
TO_RUN="munge libjwt0 libhttp-parser2.9 libjson-c5 libyaml-0-2 liblua5.4-0 libmariadb3"
TO_BUILD="gcc g++ make bison flex pkg-config perl python3 xz-utils libmunge-dev libjwt-dev
  libhttp-parser-dev libjson-c-dev libyaml-dev liblua5.4-dev libmariadb-dev"
. "$HERE/tests/support/build_once.sh"

build_and_install() {
  ./configure --prefix="$PREFIX" --sysconfdir=/etc/slurm --with-munge --enable-multiple-slurmd \
    --disable-developer --without-hdf5 --without-pmix CFLAGS="-O1 -g0 -w" &&
    make -s -j2 &&
    make -s install &&
    find "$PREFIX" -name '*.a' -delete -o -name '*.la' -delete
}

build_once "$SOURCE/slurm-25.11.7.tar.xz" "$PREFIX" "Slurm 25.11" FORETIME_SLURM2511

# Another Python needs another build of it.
tag=$("$PYTHON" -c 'import sys; print(sys.implementation.cache_tag)')
if [ "$(cat "$PREFIX/pyslurm/whole" 2>/dev/null)" != "$PYSLURM $tag" ]; then
  rm -rf "$PREFIX/pyslurm"
  SLURM_INCLUDE_DIR=$PREFIX/include SLURM_LIB_DIR=$PREFIX/lib CFLAGS="-O1 -g0 -w" \
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-deps \
    --no-binary pyslurm --no-cache-dir --target "$PREFIX/pyslurm" "pyslurm==$PYSLURM"
  echo "$PYSLURM $tag" >"$PREFIX/pyslurm/whole"
fi
