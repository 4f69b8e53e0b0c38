"""The site of a live Slurm is that of its saved output, and says what was set up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from foretime_sidecar.cli.application import app
from foretime_sim.sites.site_file import read_site
from foretime_sim.sites.slurm.site import SlurmSite
from typer.testing import CliRunner

from tests.slurm.harness.record_site import COMMANDS, use
from tests.slurm.harness.site_clusters import bring_up_varied
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease


@pytest.fixture(scope="module")
def cluster(release: SlurmRelease) -> Iterator[SlurmCluster]:
    cluster = bring_up_varied(release)
    use(cluster)
    yield cluster
    cluster.stop()


def imported(*options: str, output: Path) -> SlurmSite:
    result = CliRunner().invoke(app, ["site", "import", *options, "--output", str(output)])
    assert result.exit_code == 0, result.output
    assert f"Written to {output}." in result.output
    site = read_site(output)
    assert isinstance(site, SlurmSite)
    return site


def without_moments(site: SlurmSite) -> SlurmSite:
    """Leave out what has changed between two looks, and what columns older ones don't show."""
    return replace(
        site,
        usage_at=None,
        associations=tuple(replace(each, raw_usage=0.0) for each in site.associations),
        not_modelled=tuple(each for each in site.not_modelled if not each.startswith("QOS: the")),
    )


@pytest.mark.every_release
def test_live_and_saved_are_one(cluster: SlurmCluster, tmp_path: Path) -> None:
    live = imported("--commands-dir", str(cluster.commands), output=tmp_path / "live.toml")
    saved = tmp_path / "saved"
    saved.mkdir()
    for name, command in COMMANDS.items():
        (saved / name).write_text(cluster.checked(command.split()))
    site = imported("--from", str(saved), output=tmp_path / "saved.toml")
    assert without_moments(site) == without_moments(live)
    assert live.usage_at is not None
    assert site.usage_at is not None
    assert 0 <= site.usage_at - live.usage_at < 120
    for before, after in zip(live.associations, site.associations, strict=True):
        assert before.raw_usage <= after.raw_usage or after.raw_usage == 0


def test_it_is_the_site_that_was_recorded(
    cluster: SlurmCluster, repository: Path, tmp_path: Path
) -> None:
    assets = repository / "tests/assets/slurm" / cluster.release.name / "site"
    live = imported("--commands-dir", str(cluster.commands), output=tmp_path / "live.toml")
    recorded = imported("--from", str(assets), output=tmp_path / "recorded.toml")
    starts = {each.name: each.start for each in live.reservations}
    recorded = replace(
        recorded,
        reservations=tuple(
            replace(each, start=starts[each.name]) for each in recorded.reservations
        ),
    )
    assert without_moments(live) == without_moments(recorded)


def test_json_has_the_site(cluster: SlurmCluster) -> None:
    options = ["site", "import", "--commands-dir", str(cluster.commands), "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    site = json.loads(result.output)["site"]
    assert site["parameters"]["bf_window"] == 172_800
    assert [part["name"] for part in site["machine"]["slurm_partitions"]][:2] == ["main", "short"]
