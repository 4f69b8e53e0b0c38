#!/bin/sh
# Makes a wheel of an sdist with the Python of a root; needs no compiler there, but zig's of PyPI.
#
#   wheel.sh GLIBC REQUIREMENT...     reads /sdist/*.tar.gz and /wheelhouse, writes /dist/*.whl
#
# What was compiled before is kept in /compiled.
#
# It runs on GLIBC (2.28) and newer, and brings its own C++ library.
set -eu
glibc=$1
shift
build=/build
python3 -m venv --without-pip $build
python=$build/bin/python
$python "$(echo /wheelhouse/pip-*.whl)/pip" install --quiet --no-index --find-links /wheelhouse pip "$@"
# ccache knows a compiler by its script, in which the release is for that.
zig=$($python -m ziglang version)
for compiler in cc c++; do
  printf '#!/bin/sh\n# %s\nexec %s -m ziglang %s -target x86_64-linux-gnu.%s "$@"\n' \
    "$zig" $python $compiler "$glibc" >$build/bin/zig-$compiler
done
# Debian's Python.h includes a file by the machine's name, which zig would look for among its own.
mkdir -p $build/include/x86_64-linux-gnu
ln -s /usr/include/x86_64-linux-gnu/python3* $build/include/x86_64-linux-gnu/
printf '#!/bin/sh\nexec %s -m ziglang ar "$@"\n' $python >$build/bin/zig-ar
chmod +x $build/bin/zig-*
export PATH="$build/bin:$PATH" CC=$build/bin/zig-cc CXX=$build/bin/zig-c++ AR=$build/bin/zig-ar
export CMAKE_BUILD_PARALLEL_LEVEL="$(nproc)"
# nanobind 3.1 takes stdio.h to come with Python.h, which the stable ABI's leaves out.
export CXXFLAGS="-I$build/include -include cstdio"
export ZIG_GLOBAL_CACHE_DIR=/compiled/zig ZIG_LOCAL_CACHE_DIR=/compiled/zig
export CCACHE_DIR=/compiled/ccache CCACHE_COMPILERCHECK=content CMAKE_CXX_COMPILER_LAUNCHER=ccache
export CCACHE_SLOPPINESS=include_file_mtime,include_file_ctime
mkdir /source
tar -xzf /sdist/*.tar.gz -C /source --strip-components=1
$python -m pip wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir /wheel /source
auditwheel repair --only-plat --plat "manylinux_$(echo "$glibc" | tr . _)_x86_64" --wheel-dir /dist /wheel/*.whl
for wheel in /dist/*-abi3-*.whl; do
  [ ! -e "$wheel" ] || abi3audit --strict "$wheel"
done
