"""What a server answers to the forms of ``forms.toml``, and what becomes of the jobs.

``python -m tests.pbs.answers`` (as root, from the repository) records what one with the hook
answers in ``tests/assets/pbs/openpbs/answers.json``.
"""

from __future__ import annotations

import json
import re
import shlex
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.pbs.installed_foretime import InstalledForetime
from tests.pbs.pbs_server import PbsServer

ASSET = Path(__file__).resolve().parents[1] / "assets/pbs/openpbs/answers.json"
SETTINGS = (
    "create resource licences type=long",
    "create resource rank type=float,flag=r",
    "create queue stopped queue_type=e,enabled=true,started=false",
    "create queue closed queue_type=e,enabled=false,started=true",
    "create queue defaulted queue_type=e,enabled=true,started=true",
    "set queue defaulted resources_default.walltime=500",
    "create queue softened queue_type=e,enabled=true,started=true",
    "set queue softened resources_default.soft_walltime=50",
    "create queue bounded queue_type=e,enabled=true,started=true",
    "set queue bounded resources_min.walltime=60",
    "set queue bounded resources_max.walltime=900",
    "create queue short queue_type=e,enabled=true,started=true",
    "set queue short resources_max.walltime=900",
    "create queue long queue_type=e,enabled=true,started=true,from_route_only=true",
    'create queue route queue_type=r,enabled=true,started=true,route_destinations="short,long"',
    "create queue few queue_type=e,enabled=true,started=true",
    "set queue few max_queued=[u:PBS_GENERIC=1]",
    "create queue one queue_type=e,enabled=true,started=true",
    "set queue one max_run=[u:PBS_GENERIC=1]",
    "create queue bobs queue_type=e,enabled=true,started=true,acl_user_enable=true,acl_users=bob",
    "create queue express queue_type=e,enabled=true,started=true,priority=200",
)
# How a job ends that a signal ends, and how if its shell was not yet at the script's ``exec``.
_ENDED_BY_SIGTERM, _SHELL_ENDED_BY_SIGTERM = 256 + 15, 128 + 15
# Of a job, what tells of the moment and not of its form.
_OF_THE_MOMENT = {
    *("ctime", "mtime", "qtime", "etime", "stime", "obittime", "history_timestamp", "queue_rank"),
    *("session_id", "comment", "resources_used", "eligible_time", "jobdir", "estimated"),
    *("accrue_type", "sample_starttime", "Submit_arguments", "last_context", "substate"),
}


@dataclass(frozen=True)
class Form:
    """A submission, and steps that change it.

    Attributes
    ----------
    name, qsub, user, script, runs, ends, steps
        As ``forms.toml`` has them.
    """

    name: str
    qsub: str = "-lwalltime=1000"
    user: str = "alice"
    script: str = "exec sleep 3600"
    runs: bool = False
    ends: str = ""
    steps: tuple[str, ...] = ()


@dataclass
class Answer:
    """What became of a form.

    Attributes
    ----------
    job_id
        Its id; empty if it was refused.
    replies
        Exit code and text of qsub and of each step.
    job
        All attributes of the job but soft_walltime and those of the moment; {}: there is none.
    soft_walltime
        The job's; ``None`` without.
    decision
        The hook's at the submission, with its reason: ``planned -``, ``left no-limit``.
    """

    job_id: str
    replies: list[tuple[int, str]]
    job: dict[str, Any] = field(default_factory=dict)
    soft_walltime: str | None = None
    decision: str = ""


def forms() -> list[Form]:
    """Give all of ``forms.toml``; names of changes begin with ``change: ``."""
    content = tomllib.loads(Path(__file__).with_name("forms.toml").read_text())
    changes = [{**each, "name": f"change: {each['name']}"} for each in content["change"]]
    return [
        Form(**{**each, "steps": tuple(each.get("steps", ()))})
        for each in (*content["form"], *changes)
    ]


class AnsweringServer:
    """A server with queues of every kind that answers forms; ids of jobs follow their order.

    Parameters
    ----------
    hooked
        Whether with Foretime's hook.
    """

    def __init__(self, *, hooked: bool) -> None:
        self.server = PbsServer(settings=SETTINGS)
        try:
            self.foretime = InstalledForetime(self.server)
            if hooked:
                self.foretime.install()
            asked = ["pbs_rsub", "-R203001010000", "-D100000", "-lselect=1:ncpus=1"]
            self.resv = self.server.checked(asked, "alice").split(".")[0]
            self.server.wait_for(self._reserved, "a reservation")
            self.server.qmgr("set server scheduling = false")
            self.other = self.server.qsub("-h", "-qfew")
        except BaseException:
            self.server.stop()
            raise

    def _reserved(self) -> bool:
        said = self.server.run(["pbs_rstat", "-f", self.resv]).stdout
        return "reserve_state = RESV_CONFIRMED" in said

    def stop(self) -> None:
        """End the server."""
        self.server.stop()

    def answer(self, form: Form) -> tuple[str, list[tuple[int, str]]]:
        """Submit and change a job; gives its id, or "", and the replies."""
        names = {"other": self.other, "resv": self.resv}
        reply = self.server.try_qsub(
            *shlex.split(form.qsub.format(**names)), user=form.user, script=form.script
        )
        replies = [self._tidy(reply.returncode, reply.stdout + reply.stderr)]
        job_id = "" if reply.returncode else reply.stdout.strip() or self._latest()
        if form.runs:
            self._let_run(job_id)
        names |= {"job": job_id, "sub": job_id.replace("[]", "[1]")}
        names["soon"] = time.strftime("%Y%m%d%H%M.%S", time.localtime(time.time() + 60))
        for step in form.steps:
            user, *words = shlex.split(step.format(**names))
            done = self.server.run(words, user)
            replies.append(self._tidy(done.returncode, done.stdout + done.stderr))
        return job_id, replies

    def become(self, job_id: str, replies: list[tuple[int, str]]) -> Answer:
        """Give what has become of it by now; PBS does much after it has answered."""
        attributes = dict(self.server.jobs(job_id).get(job_id, {})) if job_id else {}
        resources = dict(attributes.get("Resource_List", {}))
        soft = resources.pop("soft_walltime", None)
        if attributes.get("Exit_status") == _SHELL_ENDED_BY_SIGTERM:
            attributes["Exit_status"] = _ENDED_BY_SIGTERM
        kept = {name: value for name, value in attributes.items() if name not in _OF_THE_MOMENT} | (
            {"Resource_List": resources} if resources else {}
        )
        tidy: dict[str, Any] = _each_text(kept, self._without_folder)
        return Answer(job_id, replies, tidy, soft, self._decision(job_id))

    def settle(self, form: Form, job_id: str) -> None:
        """Wait until a job is where it should end."""
        if form.ends:
            self.server.wait_for_state(job_id, form.ends)

    def forget(self, job_id: str) -> None:
        """Delete a job, so that the next finds the machine empty."""
        if not job_id:
            return
        self.server.run(["qdel", "-Wforce", "-x", job_id])
        self.server.wait_for(lambda: not self.server.job(job_id), f"{job_id} to be gone")

    def _latest(self) -> str:
        """Give the id of the youngest job: qsub -z doesn't tell it."""
        ids = [job for job in self.server.jobs() if re.fullmatch(r"\d+(\[\])?\..*", job)]
        return max(ids, key=lambda job: int(re.findall(r"\d+", job)[0]))

    def _let_run(self, job_id: str) -> None:
        runs = "B" if "[]" in job_id else "R"
        first = job_id.replace("[]", "[1]")

        def running() -> bool:
            self.server.cycle()  # one that confirms a reservation starts no job
            return str(self.server.job(first).get("job_state")) == "R"

        self.server.wait_for(running, f"{first} to run")
        self.server.wait_for_state(job_id, runs)
        self.server.qmgr("set server scheduling = false")

    def _tidy(self, exit_code: int, text: str) -> tuple[int, str]:
        return exit_code, self._without_folder(text)

    def _without_folder(self, text: str) -> str:
        return text.replace(str(self.server.folder), "/lab")

    def _decision(self, job_id: str) -> str:
        """Read it from the last line of queuejob before the job was queued."""
        before, queued, _ = self.server.log().partition(f";Job;{job_id};Job Queued at request of ")
        lines = re.findall(r"event=queuejob job=- .*", before)
        if not queued or not lines:
            return ""
        return " ".join(re.findall(r"(?:decision|reason)=(\S+)", lines[-1]))


def recorded(form: Form, answer: Answer) -> dict[str, Any]:
    """Give what is kept of an answer: nothing that another server would say otherwise."""
    own = answer.job_id.replace("[]", "")
    number = own.split(".")[0]
    replies = []
    for exit_code, text in answer.replies:
        first = text.partition("\nusage:")[0].strip()
        replies.append([exit_code, re.sub(rf"\b{number}\b", "JOB", first) if number else first])
    kept: dict[str, Any] = {"name": form.name, "replies": replies}
    if answer.job:
        kept |= {
            "state": answer.job["job_state"],
            "queue": answer.job["queue"],
            "resources": answer.job.get("Resource_List", {}),
            "soft_walltime": answer.soft_walltime,
            "decision": answer.decision,
        }
    return kept


def read_recorded() -> dict[str, dict[str, Any]]:
    """Give what was recorded of each form, by name."""
    return {each["name"]: each for each in json.loads(ASSET.read_text())}


def record() -> None:
    """Record what a server with the hook answers."""
    site = AnsweringServer(hooked=True)
    try:
        lines = []
        for form in forms():
            job_id, replies = site.answer(form)
            site.settle(form, job_id)
            lines.append(json.dumps(recorded(form, site.become(job_id, replies))))
            site.forget(job_id)
    finally:
        site.stop()
    ASSET.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def _each_text(value: Any, change: Any) -> Any:
    if isinstance(value, dict):
        return {name: _each_text(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [_each_text(each, change) for each in value]
    return change(value) if isinstance(value, str) else value


if __name__ == "__main__":
    record()
