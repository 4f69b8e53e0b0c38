"""Limits of partitions, QOS and associations: a live Slurm and the model answer alike.

The scenes are in ``limit_scenes.toml``. After each step the states and reasons of each scene's jobs
are those of the model, or what sbatch says where it refuses.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from tests.slurm.harness.limit_scenes import (
    CPUS,
    ENDED,
    LICENSES,
    NODES,
    ModelledScene,
    Scene,
    SceneJob,
    jobs_of,
    read_scenes,
)
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

SCENES = read_scenes()
SETTLED_S = 15
"""How long Slurm may take to come to what the model says."""
LOOKED_S = 110
"""How long until the decay thread has looked (60 s), and slurmctld after it (30 s)."""
STILL_S = 1.5
"""How long it must stay there."""
SENTENCES = {
    "Job's QOS not permitted to use this partition": "QOSNotAllowed",
    "Job's account not permitted to use this partition": "AccountNotAllowed",
}
LINES_AT_ONCE = 40
"""Lines that one sacctmgr gets."""
States = dict[str, str]


@dataclass
class PlayedScene:
    """What became of a scene: after each step, what Slurm and the model say."""

    model: ModelledScene
    ids: dict[str, str] = field(default_factory=dict)
    refused: States = field(default_factory=dict)
    jobs: int = 0
    seen: list[tuple[str, States, States]] = field(default_factory=list)

    def play(self, cluster: SlurmCluster, step: str) -> None:
        """Do one step, live and in the model."""
        scene = self.model.scene
        if step == "look":
            self.model.look()
            return
        if step.startswith("end "):
            name = step.removeprefix("end ")
            cluster.checked(["scancel", self.ids.pop(name)])
            self.model.end(name)
            return
        jobs = jobs_of(scene, step, self.jobs)
        self.jobs += len(jobs)
        name = step.split()[0]
        reply = cluster.try_sbatch(*_command(scene, jobs[0]), user=jobs[0].user)
        if reply.returncode:
            self.refused[name] = f"refused: {_words(reply.stderr)}"
        for job in jobs if not reply.returncode else []:
            task = job.name.removeprefix(name)
            self.ids[job.name] = reply.stdout.strip() + task
        self.model.submit(jobs, name)

    def live(self, found: dict[str, str]) -> States:
        """Give what Slurm says of its jobs."""
        states = {name: found.get(job, ENDED) for name, job in self.ids.items()}
        return {**self.refused, **states}


def _command(scene: Scene, job: SceneJob) -> list[str]:
    options = [f"--partition={','.join(job.slurm_partitions)}", f"--account={job.account}"]
    if not any(option.startswith("--qos") for option in job.options) and scene.qos:
        options.append(f"--qos={job.qos}")
    if not any(option.startswith("-t") for option in job.options):
        options.append("-t10")
    return [*options, *job.options]


def _words(said: str) -> str:
    """Give the limit that sbatch names, or why it refused."""
    lines = [line.removeprefix("sbatch: error: ") for line in said.strip().splitlines()]
    last = lines[-1].removeprefix("Batch job submission failed: ")
    return lines[-2] if last.startswith("Job violates accounting/QOS policy") else last


def _squeue(cluster: SlurmCluster) -> dict[str, str]:
    text = cluster.checked(["squeue", "-h", "-r", "-o", "%i|%T|%r"])
    rows = (line.split("|") for line in text.splitlines())
    return {
        job: state if state != "PENDING" else f"{state} {_reason(why)}" for job, state, why in rows
    }


def _reason(told: str) -> str:
    """Give Slurm's word where squeue prints a sentence."""
    for sentence, word in SENTENCES.items():
        if told.startswith(sentence):
            return word
    return told


def _play_all(cluster: SlurmCluster, scenes: Sequence[PlayedScene]) -> None:
    for turn in range(max(len(played.model.scene.steps) for played in scenes)):
        going = [played for played in scenes if turn < len(played.model.scene.steps)]
        for played in going:
            played.play(cluster, played.model.scene.steps[turn])
        looks = any(played.model.scene.steps[turn] == "look" for played in going)
        until, still = time.monotonic() + (LOOKED_S if looks else SETTLED_S), 0.0
        while True:
            found = _squeue(cluster)
            alike = all(played.live(found) == played.model.states for played in going)
            still = (still or time.monotonic()) if alike else 0.0
            if time.monotonic() > until or (still and time.monotonic() - still > STILL_S):
                break
            time.sleep(0.2)
        for played in going:
            step = played.model.scene.steps[turn]
            played.seen.append((step, played.live(found), dict(played.model.states)))
    cluster.run(["scancel", *(job for played in scenes for job in played.ids.values())])


def _add_accounts(cluster: SlurmCluster) -> None:
    """Add what the scenes need in few lines: 22.05 takes more than half a second for each."""
    lines = ["add qos other", "add account other"]
    plain_accounts: list[str] = []
    plain_users: dict[str, list[str]] = {"alice": [], "bob": [], "carol": []}
    own_limits: list[str] = []
    allowed = ["normal", *(f"q{scene.number}" for scene in SCENES if scene.qos)]
    for scene in SCENES:
        number, root = scene.number, "root"
        words = [step.split() for step in scene.steps]
        users = {some[1] for some in words if some[0] not in ("end", "look")}
        for name, limits in ((f"q{number}", scene.qos), (f"pq{number}", scene.partition_qos)):
            if limits:
                lines.append(f"add qos {name} {limits}")
        if scene.parent or "parent" in scene.partition:
            root = f"parent{number}"
            lines.append(f"add account {root} {scene.parent}")
        if scene.account or root != "root":
            lines.append(f"add account a{number} parent={root} {scene.account}")
        else:
            plain_accounts.append(f"a{number}")
        if "carol" in users:
            plain_users["carol"].append(f"b{number}")
            if root == "root":
                plain_accounts.append(f"b{number}")
            else:
                lines.append(f"add account b{number} parent={root}")
        if "bob" in users:
            plain_users["bob"].append(f"a{number}")
        if scene.user:
            own_limits.append(f"add user alice account=a{number} {scene.user}")
        else:
            plain_users["alice"].append(f"a{number}")
    lines.append(f"add account {','.join(plain_accounts)} parent=root")
    everywhere = f"qos={','.join(allowed)}"
    for user, accounts in plain_users.items():
        lines.append(f"add user {user} account={','.join(accounts)} {everywhere}")
    lines += [f"{line} {everywhere}" for line in own_limits]
    for first in range(0, len(lines), LINES_AT_ONCE):
        some = [*lines[first : first + LINES_AT_ONCE], "quit", ""]
        cluster.checked(["sacctmgr", "-i"], stdin="\n".join(some))


def _kind(scene: Scene) -> tuple[bool, bool, str]:
    """Give the configuration that a scene is played under."""
    return scene.looks, scene.safe, scene.enforce


def EXPERIMENT(release: SlurmRelease) -> dict[str, PlayedScene]:  # noqa: N802
    assert release.version is not None
    version = release.version[:2]
    everything = {scene.name: PlayedScene(ModelledScene(scene, version)) for scene in SCENES}
    partitions = ["main Nodes=ALL Default=YES"]
    for scene in SCENES:
        for name, more in scene.slurm_partitions.items():
            partitions.append(f"{name} Nodes={scene.nodes} {more}")
    with SlurmCluster(release, nodes=NODES, cpus=CPUS) as cluster:
        cluster.add_accounting()
        tools = ",".join(f"{name}:{count}" for name, count in LICENSES.items())
        cluster.set_conf(
            {
                "Licenses": tools,
                "AccountingStorageTRES": "license/tool,license/pen",
                "SelectTypeParameters": "CR_Core_Memory",
                "DefMemPerCPU": "1",
            },
            restart=True,
        )
        _add_accounts(cluster)
        for looks, safe, enforce in sorted({_kind(scene) for scene in SCENES}):
            enforced = "limits,qos,safe" if safe else "limits,qos"
            cluster.set_conf(
                {
                    "AccountingStorageEnforce": enforced,
                    "EnforcePartLimits": enforce,
                    "PriorityType": f"priority/{'multifactor' if looks else 'basic'}",
                    "PriorityCalcPeriod": "1",
                },
                slurm_partitions=partitions,
                restart=True,
            )
            played = [
                one
                for one in everything.values()
                if _kind(one.model.scene) == (looks, safe, enforce)
            ]
            for one in played:
                state = one.model.scene.state
                for name in one.model.scene.slurm_partitions if state != "UP" else ():
                    cluster.checked(
                        ["scontrol", "update", f"PartitionName={name}", f"State={state}"]
                    )
            _play_all(cluster, played)
    return everything


@pytest.mark.parametrize("name", [scene.name for scene in SCENES])
def test_slurm_and_the_model_answer_alike(experiment: dict[str, PlayedScene], name: str) -> None:
    for step, live, modelled in experiment[name].seen:
        assert live == modelled, step
    assert len(experiment[name].seen) == len(experiment[name].model.scene.steps)


def test_each_scene_has_a_name_of_its_own() -> None:
    assert len({scene.name for scene in SCENES}) == len(SCENES)
