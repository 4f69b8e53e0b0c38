# Functions of the scripts that build a scheduler from its source for live tests, which source this
# file. Exit code 3 of such a script: there is no source, or no root.

say() { echo "$(basename "$0"): $*" >&2; }

# install_packages PACKAGE...: those that are missing, and nothing of theirs is started
install_packages() {
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

# build_once TARBALL PREFIX NAME VARIABLE
#
# Builds a tarball into PREFIX, unless PREFIX holds a build of it, or there is no tarball but a build.
# NAME is the software; VARIABLE names the folder of its tarball. The caller sets the packages TO_RUN
# and TO_BUILD, and a function `build_and_install`, which is run in the unpacked source
# and fails if one of its commands does, as `set -e` does not hold in it.
#
# Where programs are is compiled in, so they are installed to where they stay. The file
# PREFIX/whole says that all is there, and of which source. A second script waits for the first.
build_once() {
  local tarball=$1 prefix=$2 name=$3 variable=$4 version work
  if [ "$(id -u)" != 0 ]; then
    say "only root can install $name"
    exit 3
  fi
  if [ -r "$tarball" ]; then
    version=$(sha256sum "$tarball" | cut -d' ' -f1)
  elif [ -e "$prefix/whole" ]; then
    version=$(cat "$prefix/whole")
  else
    say "no $name source at $tarball: put it there, or name its folder in $variable"
    exit 3
  fi
  # shellcheck disable=SC2086
  install_packages $TO_RUN
  if is_whole; then return; fi
  # shellcheck disable=SC2086
  install_packages $TO_BUILD
  export PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
  mkdir -p "$(dirname "$prefix")"
  exec 9>"$prefix.lock"
  flock 9
  if is_whole; then return; fi
  work=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  tar -xf "$tarball" -C "$work" --strip-components=1
  rm -rf "$prefix"
  (cd "$work" && build_and_install) >"$work/log" 2>&1 || {
    tail -n 50 "$work/log" >&2
    say "$name could not be built"
    exit 1
  }
  find "$prefix"/{bin,sbin,lib} -type f -exec sh -c \
    'for file; do head -c4 "$file" | grep -q ELF && strip --strip-unneeded "$file"; done; true' sh {} +
  echo "$version" >"$prefix/whole.new"
  mv "$prefix/whole.new" "$prefix/whole"
}

is_whole() { [ -e "$prefix/whole" ] && [ "$(cat "$prefix/whole")" = "$version" ]; }
