"""Mail by a sendmail program: to whom, nothing smuggled in, and what fails."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.notify.mail import NotSentError, address_of, mail_of, send_by_sendmail
from foretime_sidecar.notify.start_news import News
from foretime_sidecar.wording.clocks import zone_name

from tests.support.fake_sendmail import FakeSendmail

NEWS = News("gone", "4711", 1_700_000_000)


@pytest.fixture
def sendmail(tmp_path: Path) -> FakeSendmail:
    fake = FakeSendmail(tmp_path / "sendmail")
    fake.write()
    return fake


def test_a_mail_says_the_news_to_one_address(sendmail: FakeSendmail) -> None:
    mail = mail_of(NEWS, "ann@hpc.example", "foretime@hpc.example", "To stop: däh.")
    send_by_sendmail(str(sendmail.path), mail, 30)
    (taken,) = sendmail.mails()
    assert sendmail.arguments == "-i -f foretime@hpc.example -- ann@hpc.example"
    assert taken["To"] == "ann@hpc.example"
    assert taken["Subject"] == "Job 4711 no longer waits: it has run, or was cancelled"
    assert taken["Auto-Submitted"] == "auto-generated"
    assert taken["Message-ID"].endswith("@hpc.example>")
    said, times, stop = taken.get_content().strip().rsplit("\n", 2)
    assert (said.strip(), stop) == (NEWS.text, "To stop: däh.")
    assert times == f"Times are in the time zone {zone_name(NEWS.at)}."


@pytest.mark.parametrize(
    "user",
    [
        "", "-oQ/tmp", "ann bob", "ann,bob", "ann@else.example", "ann\nBcc: bob", "ann\n", "a\x00",
        "|sh", "ann<bob>", "änn", "ann..b", ".ann", "a/b", "x" * 64,
    ],
)  # fmt: skip
def test_a_name_that_is_no_mailbox_is_refused(user: str) -> None:
    with pytest.raises(InputError, match="can't be a mail address"):
        address_of(user, "hpc.example")


def test_usual_names_are_mailboxes() -> None:
    for user in ("ann", "_svc", "a.b-c_d+e", "x" * 63):
        assert address_of(user, "") == user
        assert address_of(user, "hpc.example") == f"{user}@hpc.example"


@pytest.mark.parametrize("break_", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("where", range(3))
def test_no_header_can_be_smuggled_in(break_: str, where: int) -> None:
    parts = ["4711", "ann", "foretime"]
    parts[where] += f"{break_}Bcc: eve@evil.example"
    job_id, to, sender = parts
    with pytest.raises(ValueError, match="linefeed or carriage return"):
        mail_of(News("gone", job_id, 0), to, sender, "")


@pytest.mark.parametrize(
    ("before", "why", "passing"),
    [
        ("echo 'No space left on device' >&2; exit 75", "code 75: No space left on device", True),
        ("exit 67", "code 67: it said nothing", False),
        ("exec sleep 60", "took more than 1 s", True),
    ],
)
def test_a_mail_that_is_not_taken_is_an_error(
    sendmail: FakeSendmail, before: str, why: str, passing: bool
) -> None:
    sendmail.write(before)
    with pytest.raises(NotSentError, match=why) as caught:
        send_by_sendmail(str(sendmail.path), mail_of(NEWS, "ann", "", ""), 1)
    assert caught.value.passing is passing


def test_a_sendmail_that_hangs_leaves_nothing_behind(sendmail: FakeSendmail) -> None:
    # As Postfix's does under NoNewPrivileges: its own child, postdrop, tries for ever.
    child = sendmail.folder / "child"
    sendmail.write(f"sleep 600 & echo $! > {child}; wait")
    with pytest.raises(NotSentError, match="took more than 1 s"):
        send_by_sendmail(str(sendmail.path), mail_of(NEWS, "ann", "", ""), 1)
    until = time.monotonic() + 10
    while is_alive(int(child.read_text())):
        assert time.monotonic() < until
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_sendmail_that_delivers_in_the_background_is_not_waited_for(
    sendmail: FakeSendmail,
) -> None:
    sendmail.write("sleep 5 &")
    send_by_sendmail(str(sendmail.path), mail_of(NEWS, "ann", "", ""), 2)
    assert len(sendmail.mails()) == 1


def test_no_sendmail_is_an_error() -> None:
    with pytest.raises(NotSentError, match="No such file") as caught:
        send_by_sendmail("/none/sendmail", mail_of(NEWS, "ann", "", ""), 1)
    assert not caught.value.passing
