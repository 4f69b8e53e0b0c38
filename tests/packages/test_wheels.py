"""The wheels and the sdist: what is in them, and that they run where no compiler is."""

from __future__ import annotations

import re
import tarfile
import zipfile
from pathlib import Path

import pytest
from make_packages import download  # the one way in which packages are fetched

from tests.packages.package_root import DIST, SUITES, PackageRoot, built

pytestmark = pytest.mark.packages

NAMES = {
    "bookworm": "foretime-*-cp311-cp311-manylinux_2_28_x86_64.whl",
    "trixie": "foretime-*-cp312-abi3-manylinux_2_28_x86_64.whl",
}


@pytest.fixture(scope="module", params=SUITES)
def suite(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def root(suite: str, tmp_path_factory: pytest.TempPathFactory) -> PackageRoot:
    """An environment with the wheel and the extra sim, made without a compiler and a network."""
    wheel = built(NAMES[suite])
    root = PackageRoot(suite, tmp_path_factory.mktemp(suite))
    root.run("true")
    download(root.path("wheelhouse"), SUITES[suite], ["pip", f"foretime[sim] @ {wheel.as_uri()}"])
    root.run(
        "python3 -m venv --without-pip /plain; python3 -m venv --without-pip /sim\n"
        "pip=$(echo /wheelhouse/pip-*.whl)/pip\n"
        "args='install --no-index --find-links /wheelhouse'\n"
        f"/plain/bin/python $pip $args /dist/{wheel.name}\n"
        f"/sim/bin/python $pip $args '/dist/{wheel.name}[sim]'"
    )
    return root


def test_the_command_runs(root: PackageRoot) -> None:
    assert root.run("command -v cc gcc c++ g++ clang || echo none") == "none\n"
    assert re.fullmatch(r"foretime \d\S*\n", root.run("/plain/bin/foretime --version"))
    assert "replay" in root.run("/plain/bin/foretime --help")
    replay = "bin/foretime replay --generate lublin2003 --jobs 500 --warm-up 0"
    assert "pip install 'foretime[sim]'" in root.run(f"/plain/{replay}", fails=True)
    assert "Foretime" in root.run(f"/sim/{replay}")


def test_what_schedulers_and_systems_need_is_found(root: PackageRoot) -> None:
    said = root.run(
        "/plain/bin/python -c 'from foretime_sidecar.install.contrib_files import contrib_file\n"
        "from foretime_sim.mocks.plugin_files import plugin_file\n"
        'print(contrib_file("systemd/foretime.service"), plugin_file("pbs/foretime_hook.py"))\''
    )
    place = "/plain/share/foretime/"
    assert said == f"{place}contrib/systemd/foretime.service {place}plugin/pbs/foretime_hook.py\n"


@pytest.mark.parametrize("suite", SUITES)
def test_a_wheel_has_all_of_plugin_and_contrib(suite: str, repository: Path) -> None:
    with zipfile.ZipFile(built(NAMES[suite])) as wheel:
        names = [name for name in wheel.namelist() if not name.endswith("/")]
    places = [re.sub(r"^[^/]+\.data/data/share/foretime/", "", name) for name in names]
    for folder in ("plugin", "contrib"):
        expected = {
            str(path.relative_to(repository))
            for path in (repository / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        expected -= {name for name in expected if name.startswith("contrib/packages/")}
        assert {name for name in places if name.startswith(f"{folder}/")} == expected
    assert not [name for name in names if name.endswith((".cpp", ".hpp")) or "tests/" in name]


def test_the_sdist_has_what_wheels_are_made_of() -> None:
    (path,) = DIST.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"CMakeLists.txt", "plugin/slurm/foretime.lua", "contrib/foretime.toml"} <= names
    assert {"contrib/packages/make_packages.py", "CHANGELOG.md", "LICENSE", "Makefile"} <= names
