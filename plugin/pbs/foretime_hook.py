# Foretime's hook for OpenPBS and PBS Professional: plans jobs with how long they really take.
#
# It runs inside pbs_server (Python 3.6 or newer) at queuejob, modifyjob and runjob, reads one file,
# the table (TABLE.md), and sets Resource_List.soft_walltime. It never raises an error or rejects a
# request; on any doubt the job goes through as its user wrote it. Nothing is kept from one run to
# the next: the server starts its interpreter anew when it likes.
#
# How to install it, what it leaves alone and what it logs: README.md.

import pbs

try:
    import os
    import stat
    import time
except BaseException:  # the server would reject the job for a Python that is broken
    pbs.event().accept()

FORMAT = b"1"
MICRO = 1000000
LONGEST_REQUEST_S = 4000000000
# pbs_sched divides by soft_walltime: of a running job that has 0 it dies, and again at each start.
SHORTEST_SOFT_WALLTIME_S = 1
# A clock may be set back; a table from further in the future than this isn't believed.
CLOCK_TOLERANCE_S = 3600
NO_PROJECT = "_pbs_project_default"
CHUNK_BYTES = 1 << 20
BLOCK_BYTES = 4096
MOST_DIGITS = 1000
DIGITS = frozenset(b"0123456789")
PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
SPACES = frozenset(b" \t\n\v\f\r")

DEFAULTS = {
    # The table file's path.
    "table": "/var/lib/foretime/table/foretime.table",
    # While this file exists, no job is planned; null: there is no such file.
    "disable_file": "/etc/foretime/foretime.off",
    # A job that was submitted this long ago is judged anew when it starts.
    "readjust_after_s": 3600,
    # After this time the hook gives up and leaves the job alone; far below the hook's alarm, at
    # which the server would reject the request.
    "deadline_s": 0.5,
    # A larger table isn't read.
    "largest_table_bytes": 64 * 1024 * 1024,
    # The scheduler's dedicated times; null: sched_priv/dedicated_time in PBS_HOME.
    "dedicated_time": None,
}


class LeftAlone(Exception):
    """The job is to be planned with what its user asked for; why, in one word."""

    def __init__(self, reason, detail=""):
        Exception.__init__(self, reason)
        self.reason = reason
        self.detail = detail


class Deadline:
    """The time that this run may take; `check` ends it when that is over."""

    def __init__(self):
        self.started = time.monotonic()
        self.seconds = DEFAULTS["deadline_s"]

    def check(self):
        if time.monotonic() - self.started > self.seconds:
            raise LeftAlone("too-slow", "it took more than %s s" % self.seconds)


# Configuration ---------------------------------------------------------------------------------


class RegularFile:
    """A regular file, open; anything else is not opened, so nothing can block or never end.

    What is in its place after a rename doesn't matter: this is still the file that was opened.
    """

    def __init__(self, path, largest):
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ValueError("not a regular file")
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        self.descriptor = os.open(path, flags)
        status = os.fstat(self.descriptor)
        self.size = status.st_size
        if not stat.S_ISREG(status.st_mode) or self.size > largest:
            self.close()
            raise ValueError("not a regular file of at most %d bytes" % largest)

    def read(self, start, stop):
        return os.pread(self.descriptor, stop - start, start)

    def close(self):
        os.close(self.descriptor)


def whole_file(path):
    """A small file's bytes."""
    opened = RegularFile(path, CHUNK_BYTES)
    try:
        return opened.read(0, opened.size)
    finally:
        opened.close()


def configuration():
    """The settings of the hook's configuration file over the defaults."""
    config = dict(DEFAULTS)
    path = getattr(pbs, "hook_config_filename", None)
    if not path:
        return config
    # Here, where an error of a Python that is not whole is caught.
    import json

    try:
        given = json.loads(whole_file(path).decode("utf-8"))
    except (OSError, ValueError) as problem:
        raise LeftAlone("configuration", "%s: %s" % (path, problem))
    if not isinstance(given, dict):
        raise LeftAlone("configuration", "%s: not a JSON object" % path)
    for name, value in given.items():
        default = DEFAULTS.get(name)
        if name not in DEFAULTS:
            raise LeftAlone("configuration", "unknown setting %s" % name)
        if isinstance(default, (int, float)):
            right = isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
        else:
            right = (isinstance(value, str) and value != "") or (value is None and name != "table")
        if not right:
            raise LeftAlone("configuration", "%s can't be %r" % (name, value))
        config[name] = value
    return config


def disabled(config):
    path = config["disable_file"]
    if path is None:
        return False
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # not to be told: off is the safe answer
    return True


# Reading the table -----------------------------------------------------------------------------


def check_sum(text, deadline):
    """A polynomial over the bytes, modulo the largest prime below 2^32."""
    total = 1
    for start in range(0, len(text), 65536):
        for byte in text[start : start + 65536]:
            total = (total * 65599 + byte) % 4294967291
        deadline.check()
    return total


def encode(name):
    """A name as it stands in the table."""
    encoded = []
    for byte in name.encode("utf-8", "surrogateescape"):
        encoded.append(chr(byte) if byte in PLAIN else "%%%02X" % byte)
    return "".join(encoded).encode("ascii")


def number(text):
    """A whole number in ASCII digits, or None; not one so long that to read it takes time."""
    return int(text) if text and len(text) <= MOST_DIGITS and DIGITS.issuperset(text) else None


def ten_digits(text):
    return int(text) if len(text) == 10 and DIGITS.issuperset(text) else None


def micro(text):
    """A number from 0 to 1 with six decimals, in millionths, or None."""
    if len(text) != 8 or text[1:2] != b"." or not DIGITS.issuperset(text[:1] + text[2:]):
        return None
    value = int(text[:1] + text[2:])
    return value if value <= MICRO else None


def word(text):
    """Text without any space, or None."""
    return text if text and SPACES.isdisjoint(text) else None


def one_of(*choices):
    return lambda text: text if text in choices else None


def lower_case(text):
    return text if text and all(97 <= byte <= 122 for byte in text) else None


def positive(text):
    value = number(text)
    return value if value is not None and value >= 1 else None


def percent(text):
    value = number(text)
    return value if value is not None and value <= 100 else None


def bounds(text):
    if text == b"-":
        return []
    values = [number(part) for part in text.split(b",")]
    return None if None in values else values


def back_off(text):
    """Kinds of jobs as (word, whose, whether with the very t_req, whether with a size)."""
    kinds = []
    for kind in text.split(b","):
        who, _, times = kind.partition(b"+")
        if who not in (b"user", b"project"):
            who, times = None, kind
        if times not in (b"request", b"request+size", b"class", b"class+size"):
            return None
        kinds.append((kind, who, times.startswith(b"request"), times.endswith(b"+size")))
    return kinds


SETTINGS = {
    b"mode": lower_case,
    b"enforce_share_percent": percent,
    b"scheme": one_of(b"user", b"project", b"combined", b"learned"),
    # These two are about Slurm: understood, and of no meaning here.
    b"mechanism": one_of(
        b"time-min", b"time-min-at-look", b"rewrite-limit", b"rewrite-limit-at-look"
    ),
    b"user_time_min": one_of(b"raise", b"keep", b"clear"),
    b"minimum_adjustment": micro,
    b"minimum_scheduled_time_s": number,
    b"rounding_s": positive,
    b"requested_time_bounds_s": bounds,
}
# Only in tables of the scheme learned: kinds of jobs, in the order to look for a row.
LEARNED_SETTINGS = {b"size_bounds": bounds, b"backoff": back_off}
# Only in tables that let no job be planned: jobs submitted since then have never been.
UNPLANNED_SINCE = b"unplanned_since"
# The kinds of names that a table knows (TABLE.md), and a job's name of each, "" if it has none.
KINDS = {
    b"user": lambda job: job.user,
    b"account": lambda job: job.project,
    # These two are Slurm's.
    b"slurm_partition": lambda job: "",
    b"qos": lambda job: "",
    b"queue": lambda job: job.queue_name(),
}
WITHOUT_CASE = (b"account", b"qos")
# enforce can be limited to these.
ONLY_KINDS = (b"account", b"slurm_partition", b"queue")
ADVICE = (b"told", b"told_until", b"median_wait_s")


def as_compared(kind, encoded):
    """Of names that are found without regard to case, one that is the same for all."""
    return encoded.lower() if kind in WITHOUT_CASE else encoded


def name_of(job, kind):
    """A job's name as it is compared with those in the table; empty if it has none."""
    return as_compared(kind, encode(KINDS[kind](job)))


class Table:
    """The table file, of which all but the rows is read and checked; a bucket is when needed."""

    def __init__(self, opened, deadline):
        self.opened = opened
        self.deadline = deadline
        self.settings = {}
        self.leave = {kind: set() for kind in KINDS}
        self.longest = {kind: {} for kind in (*KINDS, b"any")}
        self.only = {}
        self.advice = {name: set() for name in ADVICE}
        self.reservations = []
        self.checked = {}  # buckets, by their numbers
        data = opened.read(0, BLOCK_BYTES)
        first, newline, _ = data.partition(b"\n")
        if not newline or not first.startswith(b"foretime-table "):
            raise LeftAlone("table", "not a Foretime table")
        words = first.split(b" ")
        if words[1] != FORMAT:
            raise LeftAlone("table", "of another version")
        names = [b"generation", b"length", b"head", b"written", b"valid", b"buckets"]
        pairs = [part.partition(b"=") for part in words[2:]]
        values = [number(value) for _, _, value in pairs]
        if [name for name, _, _ in pairs] != names or None in values or values[5] < 1:
            raise LeftAlone("table", "its first line can't be read")
        self.generation, length = pairs[0][2], pairs[1][2]
        _, size, head, self.written, self.valid, self.buckets = values
        trailer = b"end generation=" + self.generation + b" length=" + length + b"\n"
        self.rows_end = opened.size - len(trailer)
        if size != opened.size or opened.read(max(self.rows_end, 0), size) != trailer:
            raise LeftAlone("table", "cut short or not of one piece")
        self.rows_start = head + 17
        if self.rows_start > self.rows_end:
            raise LeftAlone("table", "its first line can't be right")
        if len(data) < self.rows_start:
            data = opened.read(0, self.rows_start)
        line = data[head : self.rows_start]
        if (
            line[:6] != b"check "
            or line[16:] != b"\n"
            or ten_digits(line[6:16]) != check_sum(data[:head], deadline)
        ):
            raise LeftAlone("table", "its settings are damaged")
        for line in data[len(first) + 1 : head].split(b"\n")[:-1]:
            if not self.take_setting(line):
                raise LeftAlone("table", "a setting that this hook can't read: %r" % line[:80])
        needed = list(SETTINGS)
        if self.settings.get(b"scheme") == b"learned":
            needed += LEARNED_SETTINGS
        for name in needed:
            if name not in self.settings:
                raise LeftAlone("table", "no setting %r" % name)
        self.mode = self.settings[b"mode"]
        self.scheme = self.settings[b"scheme"]

    def take_setting(self, line):
        name, _, value = line.partition(b" ")
        if name == b"leave":
            kind, _, who = value.partition(b" ")
            if kind not in self.leave or word(who) is None:
                return False
            self.leave[kind].add(as_compared(kind, who))
            return True
        if name == b"longest":
            words = value.split(b" ")
            seconds = number(words[2]) if len(words) == 3 else None
            kind, who = words[0], word(words[1]) if len(words) == 3 else None
            if kind not in self.longest or who is None or seconds is None:
                return False
            who = as_compared(kind, who)
            longest = self.longest[kind]
            longest[who] = min(longest.get(who, seconds), seconds)
            return True
        if name == b"only":
            kind, _, who = value.partition(b" ")
            if kind not in ONLY_KINDS or word(who) is None:
                return False
            names = self.only.setdefault(kind, set())
            names.add(as_compared(kind, who))
            return True
        if name in ADVICE:
            return self.take_advice(name, value)
        if name == b"reservation":
            words = value.split(b" ")
            if len(words) != 3 or word(words[2]) is None:
                return False
            start, stop = number(words[0]), number(words[1])
            where = None if words[2] == b"*" else words[2].split(b",")
            self.reservations.append((start, stop, where))
            return start is not None and stop is not None
        parse = number if name == UNPLANNED_SINCE else SETTINGS.get(name)
        parse = parse or LEARNED_SETTINGS.get(name)
        if parse is None or name in self.settings:
            return False
        self.settings[name] = parse(value)
        return self.settings[name] is not None

    def take_advice(self, name, value):
        """Check what is only said to users of Slurm: PBS shows them nothing."""
        first, _, last = value.rpartition(b" ")
        if number(last) is None or first in self.advice[name]:
            return False
        self.advice[name].add(first)
        if name == b"told_until":
            return not first
        return number(first) is not None if name == b"median_wait_s" else word(first) is not None

    def rows_of(self, encoded):
        """The rows of the bucket that a name's are in."""
        bucket = check_sum(encoded, self.deadline) % self.buckets
        if bucket not in self.checked:
            tag = b"#%06d " % bucket
            found = self.bucket(bucket)
            line_end = found.find(b"\n")
            rows = found[line_end:]
            expected = ten_digits(found[len(tag) : line_end])
            if (
                not found.startswith(tag)
                or line_end < 0
                or expected != check_sum(rows + tag + self.generation, self.deadline)
            ):
                raise LeftAlone("table", "damaged: bucket %r" % tag)
            self.checked[bucket] = rows
        return self.checked[bucket]

    def bucket(self, wanted):
        """The bytes of a bucket, found by halves: buckets stand in the order of their numbers."""
        # Between these two begins the bucket, in an undamaged table.
        low, high = self.rows_start, self.rows_end
        while high - low > BLOCK_BYTES:
            self.deadline.check()
            middle = (low + high) // 2
            at = self.next_bucket(middle, high)
            found = wanted + 1 if at == high else number(self.opened.read(at + 1, at + 7))
            if found is None:
                raise LeftAlone("table", "damaged: byte %d" % at)
            if found <= wanted:
                low = at
            else:
                high = middle
        while low < high and self.opened.read(low, low + 7) != b"#%06d" % wanted:
            low = self.next_bucket(low + 1, high)
        return self.opened.read(low, self.next_bucket(low + 1, self.rows_end))

    def next_bucket(self, start, stop):
        """Where the first bucket from one place on begins, or the other place."""
        while start < stop:
            at = self.opened.read(start, min(start + BLOCK_BYTES, stop)).find(b"#")
            if at >= 0:
                return start + at
            start = min(start + BLOCK_BYTES, stop)
            self.deadline.check()
        return stop

    def adjustment(self, scope, name, values, processor_seconds):
        """A in millionths as this row has it; None if there is none, or not for such a job."""
        encoded = encode(name)
        rows = self.rows_of(encoded)
        key = b"\n%s %s %s " % (scope, encoded, values)
        at = rows.find(key)
        if at < 0:
            return None
        value, _, rest = rows[at + len(key) :].partition(b" ")
        largest, newline, _ = rest.partition(b"\n")
        value = micro(value)
        limit = number(largest)
        if value is None or not newline or (limit is None and largest != b"-"):
            raise LeftAlone("table", "damaged: row %r" % key)
        return None if limit is not None and processor_seconds > limit else value

    def mode_for(self, job):
        """The mode that counts for this job: enforce may be for a share of users, or for some
        accounts and queues alone. Users can't be told anything here, so advise is observe."""
        if self.mode != b"enforce":
            return b"observe"
        share = self.settings[b"enforce_share_percent"]
        inside = share == 100 or (
            job.user and check_sum(encode(job.user), self.deadline) % 100 < share
        )
        for kind, names in self.only.items():
            inside = inside and name_of(job, kind) in names
        return b"enforce" if inside else b"observe"


# What PBS tells of a job -----------------------------------------------------------------------


def attribute(holder, name):
    """An attribute's value; None where it is unset or this PBS has none of that name."""
    try:
        value = getattr(holder, name)
    except Exception:  # PBS raises errors of its own here
        return None
    return None if isinstance(value, str) and value == "" else value


def resource(holder, name, of="Resource_List"):
    resources = attribute(holder, of)
    if resources is None:
        return None
    try:
        value = resources[name]
    except Exception:  # as above
        return None
    return None if isinstance(value, str) and value == "" else value


def names_resource(request, name):
    """Whether a request names a resource, be it to take it away (qalter -l walltime=)."""
    try:
        return request.Resource_List[name] is not None
    except Exception:  # as above
        return False


def seconds(value):
    """A duration in seconds, as PBS gives or writes it; None if there is none."""
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        pass
    total = 0
    for part in str(value).split(".")[0].split(":"):
        if not part.isdigit():
            return None
        total = total * 60 + int(part)
    return total


def count(value):
    try:
        return max(int(value), 0) if len(str(value)) <= MOST_DIGITS else 0
    except (TypeError, ValueError):
        return 0


def local_host():
    """The server's host as PBS names it, in lower case; "" if it isn't told."""
    try:
        return str(pbs.get_local_nodename()).lower()
    except Exception:  # as above
        return ""


class Job:
    """A job as it will be: what the request says, and the existing job for the rest."""

    def __init__(self, event, kind):
        self.event = event
        self.asked = event.job
        self.before = attribute(event, "job_o") if kind == "modifyjob" else None
        self.told = {}  # PBS's server and queue, each of which takes it half a millisecond
        queue = self.get("queue")
        self.asked_queue = "" if queue is None else str(queue)
        owner = str(self.get("Job_Owner") or event.requestor or "").split("@")[0]
        self.user = str(self.get("euser") or self.runs_as(owner))
        project = str(self.get("project") or "")
        self.project = str(
            self.get("Account_Name") or (project if project != NO_PROJECT else "") or ""
        )
        self.id = str(self.get("id") or "")
        self.soft_walltime_s = seconds(self.resource("soft_walltime"))

    def get(self, name):
        value = attribute(self.asked, name)
        return attribute(self.before, name) if value is None else value

    def resource(self, name):
        return resource(self.asked if names_resource(self.asked, name) else self.before, name)

    def runs_as(self, owner):
        """Whose job it will be: User_List's entry for this host, or for any, or the owner.

        An entry for another host counts for nothing, or its name would lend its table row.
        """
        listed = str(self.get("User_List") or "")
        here = local_host() if "@" in listed else ""
        for entry in listed.split(","):
            name, at, host = entry.strip().partition("@")
            if at and host.lower() == here:
                return name
            if name and not at:
                owner = name
        return owner

    def runs(self):
        """Whether it has started: a user may then raise none of its resources."""
        state = attribute(self.before, "job_state")
        return state is not None and any(
            state == getattr(pbs, "JOB_STATE_" + name, None)
            for name in ("RUNNING", "SUSPEND", "SUSPEND_USERACTIVE", "EXITING")
        )

    def once(self, name, ask):
        """What PBS tells when it is first asked, None if it raises an error."""
        if name not in self.told:
            try:
                self.told[name] = ask()
            except Exception:  # whatever PBS raises: then its defaults aren't known
                self.told[name] = None
        return self.told[name]

    def server(self):
        return self.once("server", pbs.server)

    def queue(self):
        return self.once("queue", self.find_queue)

    def queue_name(self):
        """Its queue, or the one that PBS will put it into, without a server's name."""
        queue = self.asked_queue or str(attribute(self.server(), "default_queue") or "")
        return queue.split("@")[0]

    def find_queue(self):
        queue = self.get("queue")
        if attribute(queue, "queue_type") is not None:
            return queue
        return self.server().queue(self.queue_name())

    def routed(self):
        """Whether the queue only hands the job on, to one with defaults of its own."""
        kind = attribute(self.queue(), "queue_type")
        return kind is not None and (
            kind == getattr(pbs, "QTYPE_ROUTE", 2) or str(kind).lower().startswith("r")
        )

    def walltime_s(self):
        """t_req: the request's walltime, or the one that PBS will give it; None: no limit."""
        own = seconds(self.resource("walltime"))
        if own is not None:
            return own
        if self.routed():
            return None
        # The order in which PBS fills in what a request lacks.
        for of in ("resources_default", "resources_max"):
            for ask in (self.queue, self.server):
                value = seconds(resource(ask(), "walltime", of))
                if value is not None:
                    return value
        return None

    def default_chunk_processors(self):
        for ask in (self.queue, self.server):
            value = count(resource(ask(), "ncpus", "default_chunk"))
            if value:
                return value
        return 1

    def processors(self):
        """Processors that the request names, the larger of its ncpus and its chunks'."""
        most = max(count(self.resource("ncpus")), 1)
        for name, per_chunk in (("select", "ncpus"), ("nodes", "ppn")):
            chunks = self.resource(name)
            total = 0
            for chunk in str(chunks).split("+") if chunks is not None else ():
                parts = chunk.split(":")
                copies = 1
                if parts[0].isdigit():
                    copies = count(parts[0])
                each = None
                for part in parts:
                    key, _, value = part.partition("=")
                    if key in (per_chunk, "ncpus") and value.isdigit():
                        each = count(value)
                if each is None:
                    each = self.default_chunk_processors()
                total += copies * each
            most = max(most, total)
        return most

    def shrinks_to_fit(self):
        return (
            self.resource("min_walltime") is not None or self.resource("max_walltime") is not None
        )

    def in_reservation(self):
        """Whether it is for a reservation: its queue is the reservation's then."""
        for name in ("resv", "reserve_ID"):
            if attribute(self.asked, name) is not None or attribute(self.before, name) is not None:
                return True
        queue = self.asked_queue.split("@")[0]
        return len(queue) > 1 and queue[0] in "RSM" and queue[1:].split(".")[0].isdigit()

    def opted_out(self):
        """Whether its environment says FORETIME=off (qsub -v FORETIME=off)."""
        variables = self.get("Variable_List")
        if variables is None:
            return False
        try:
            value = variables["FORETIME"]
        except KeyError:
            return False
        except TypeError:
            return "FORETIME=off" in str(variables).split(",")
        return str(value).lower() == "off"

    def start_time(self, now):
        return max(now, seconds(self.get("Execution_Time")) or 0)

    def arrived(self):
        """Whether another server sent it here: what is new has no id and no hops yet."""
        return self.id != "" or count(self.get("hop_count")) > 0

    def set_soft_walltime(self, value):
        """Seconds, or None to take it away, as is done with what the scheduler would die of."""
        if value is not None and value < SHORTEST_SOFT_WALLTIME_S:
            value = None
        self.asked.Resource_List["soft_walltime"] = None if value is None else pbs.duration(value)
        self.soft_walltime_s = value

    def set_plain(self):
        """Have it planned with all of its walltime.

        Equal to walltime is valid whatever the server does. Only where it can't be that, it is
        unset: a resource set again after that has crashed servers (OpenPBS before 22).
        """
        own = seconds(self.resource("walltime"))
        self.set_soft_walltime(None if self.shrinks_to_fit() else own)


# The decision ----------------------------------------------------------------------------------


def round_up(value, unit):
    return -(-value // unit) * unit


def class_of(value, upper_ends):
    """How many of the classes' upper ends lie below a value."""
    time_class = 0
    for at, bound in enumerate(upper_ends):
        if bound < value:
            time_class = at + 1
    return time_class


def mean_adjustment(table, job, requested_time):
    """A of the user's and the project's rows (Tang 2010, equation 5), None without one."""
    time_class = b"%d" % class_of(requested_time, table.settings[b"requested_time_bounds_s"])
    processor_seconds = job.processors() * requested_time
    found = []
    for scope, name, other in (
        (b"user", job.user, b"project"),
        (b"project", job.project, b"user"),
    ):
        if table.scheme != other and name:
            value = table.adjustment(scope, name, time_class, processor_seconds)
            if value is not None:
                found.append(value)
    return (found[0] + found[-1] + 1) // 2 if found else None


def learned_adjustment(table, job, requested_time):
    """A of the first kind in the back-off order that has a row for such a job, or None."""
    settings, processors = table.settings, job.processors()
    time_class = class_of(requested_time, settings[b"requested_time_bounds_s"])
    size = class_of(processors, settings[b"size_bounds"])
    for kind, who, exact, sized in settings[b"backoff"]:
        name = {b"user": job.user, b"project": job.project, None: "-"}[who]
        if not name:
            continue
        values = b"%d" % (requested_time if exact else time_class)
        if sized:
            values += b".%d" % size
        value = table.adjustment(kind, name, values, processors * requested_time)
        if value is not None:
            return value
    return None


def scheduled_time(table, job, requested_time):
    """t_sched in seconds (Tang 2010, equation 4); TABLE.md has the same in words."""
    settings = table.settings
    find = learned_adjustment if table.scheme == b"learned" else mean_adjustment
    adjustment = find(table, job, requested_time)
    if adjustment is None:
        raise LeftAlone("no-row")
    adjustment = max(adjustment, settings[b"minimum_adjustment"])
    time_s = round_up(
        round_up(adjustment * requested_time, MICRO) // MICRO, settings[b"rounding_s"]
    )
    return min(max(time_s, settings[b"minimum_scheduled_time_s"], 1), requested_time)


def check_plain(job, requested_time, config, now):
    """Raise LeftAlone for a job that must be planned with what its user asked for."""
    if job.opted_out():
        raise LeftAlone("opt-out")
    if job.shrinks_to_fit():
        raise LeftAlone("shrink-to-fit")
    if requested_time is None or not 0 < requested_time <= LONGEST_REQUEST_S:
        raise LeftAlone("no-limit")
    # PBS refuses a walltime in a chunk, and if that is below t_sched, in other words than without.
    if ":walltime=" in str(job.resource("select")):
        raise LeftAlone("no-limit")
    if job.in_reservation():
        raise LeftAlone("reservation-job")
    if keeps_primetime():
        raise LeftAlone("primetime")
    start = job.start_time(now)
    for begins, ends in dedicated_times(config):
        if start < ends and start + requested_time > begins:
            raise LeftAlone("dedicated-time")


def check_excluded(table, job, requested_time, now):
    """Raise LeftAlone for a job that the table excludes."""
    for kind in KINDS:
        if not (table.leave[kind] or table.longest[kind]):
            continue  # for a queue's name PBS may have to be asked
        name = name_of(job, kind)
        if name in table.leave[kind] or requested_time > table.longest[kind].get(
            name, LONGEST_REQUEST_S
        ):
            raise LeftAlone(kind.decode())
    if requested_time > table.longest[b"any"].get(b"*", LONGEST_REQUEST_S):
        raise LeftAlone("longest")
    start = job.start_time(now)
    for begins, ends, where in table.reservations:
        if (
            start < ends
            and start + requested_time > begins
            and (where is None or name_of(job, b"queue") in where)
        ):
            raise LeftAlone("reservation")


def of_scheduler(reason, name, path=None):
    """A file of the scheduler's, as text; "" where there is none.

    One that can't be read leaves the job alone for that reason.
    """
    if path is None:
        try:
            path = os.path.join(pbs.pbs_conf["PBS_HOME"], "sched_priv", name)
        except Exception:  # an older PBS doesn't tell its home
            return ""
    try:
        return whole_file(path).decode("ascii", "replace")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as problem:
        raise LeftAlone(reason, "%s: %s" % (path, problem))


def keeps_primetime():
    """Whether the scheduler starts no job that would run on into primetime, or out of it.

    It judges that by soft_walltime, and when a job starts is not known yet.
    """
    text = of_scheduler("primetime", "sched_config")
    if "backfill_prime" not in text:
        return False
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        if name.strip() == "backfill_prime":
            first = (value.split() or ["false"])[0].lower()
            if first not in ("false", "0"):
                return True
    return False


def dedicated_times(config):
    """The scheduler's dedicated times: lines MM/DD/YYYY HH:MM MM/DD/YYYY HH:MM, local time.

    The scheduler judges by soft_walltime whether a job ends before one, and would start it.
    """
    text = of_scheduler("dedicated-time", "dedicated_time", config["dedicated_time"])
    found = []
    for line in text.split("\n"):
        words = line.split("#")[0].replace("/", " ").replace(":", " ").split()
        if not words:
            continue
        try:
            month, day, year, hour, minute, *end = [int(part) for part in words]
            end_month, end_day, end_year, end_hour, end_minute = end
            begins = time.mktime((year, month, day, hour, minute, 0, 0, 0, -1))
            ends = time.mktime((end_year, end_month, end_day, end_hour, end_minute, 0, 0, 0, -1))
        except (ValueError, OverflowError):
            continue  # as the scheduler, which logs the line and goes on
        found.append((begins, ends))
    return found


class Run:
    """One run of the hook: its event, its settings and what it decides."""

    def __init__(self, event, kind):
        self.deadline = Deadline()
        self.now = int(time.time())
        self.job = Job(event, kind)
        self.kind = kind
        self.mode = b"-"
        self.generation = b"-"
        self.requested_time = None
        self.opened = []

    def close(self):
        for opened in self.opened:
            opened.close()

    def config(self):
        config = configuration()
        self.deadline.seconds = config["deadline_s"]
        return config

    def read_table(self, config):
        path = config["table"]
        try:
            opened = RegularFile(path, config["largest_table_bytes"])
            self.opened.append(opened)
            return Table(opened, self.deadline)
        except (OSError, ValueError) as problem:
            raise LeftAlone("table", "%s: %s" % (path, problem))

    def table(self, config):
        """The table, if jobs may be planned with it now."""
        if disabled(config):
            raise LeftAlone("disabled")
        table = self.read_table(config)
        if self.now > table.valid:
            raise LeftAlone("table", "out of date")
        if table.written > self.now + CLOCK_TOLERANCE_S:
            raise LeftAlone("table", "written in the future: has a clock been set?")
        if table.mode not in (b"observe", b"advise", b"enforce"):
            raise LeftAlone("off")
        self.mode, self.generation = table.mode_for(self.job), table.generation
        return table

    def may_be_ours(self):
        """Whether the job may have been planned: else soft_walltime is of others, and stays.

        Without a table nobody can tell; one that is out of date can.
        """
        try:
            table = self.read_table(self.config())
        except LeftAlone:
            return True
        since = table.settings.get(UNPLANNED_SINCE)
        submitted = seconds(self.job.get("ctime"))
        return since is None or submitted is None or submitted <= since

    def plan(self, config, table):
        """t_sched, or LeftAlone."""
        self.requested_time = self.job.walltime_s()
        requested_time = self.requested_time
        check_plain(self.job, requested_time, config, self.now)
        check_excluded(table, self.job, requested_time, self.now)
        planned = scheduled_time(table, self.job, requested_time)
        if planned >= requested_time:
            raise LeftAlone("as-requested")
        return planned

    def log(self, decision, planned=None, reason="-", detail=""):
        """One line for the server's log; its words are described in README.md."""
        job = self.job
        fields = (
            ("event", self.kind),
            ("job", job.id),
            ("user", job.user),
            ("project", job.project),
            ("queue", job.asked_queue),
            ("t_req", self.requested_time),
            ("t_sched", planned),
            ("decision", decision),
            ("reason", reason),
            ("mode", self.mode.decode("ascii")),
            ("generation", self.generation.decode("ascii")),
        )
        line = "foretime: " + " ".join(
            "%s=%s"
            % (name, "-" if value in (None, "", "-") else encode(str(value)).decode("ascii"))
            for name, value in fields
        )
        if detail:
            line += " (%s)" % detail
        write_log(getattr(pbs, "EVENT_JOB", 8), line)

    def lower(self, walltime):
        """Lower soft_walltime to the walltime, or take it away where it would be too short."""
        self.job.set_soft_walltime(walltime)
        self.requested_time = walltime
        planned = self.job.soft_walltime_s
        self.log("cleared" if planned is None else "lowered", planned, reason="walltime")

    def queuejob(self):
        job = self.job
        foreign = False
        if job.soft_walltime_s is not None and job.arrived():
            job.set_plain()  # another server's word
            foreign = True
        try:
            if not foreign and job.soft_walltime_s is not None:
                raise LeftAlone("site")  # a hook before this one has set it
            config = self.config()
            table = self.table(config)
            planned = self.plan(config, table)
        except LeftAlone as left:
            self.log("left", reason=left.reason, detail=left.detail)
            return
        if self.mode == b"observe":
            self.log("observed", planned)
        else:
            job.set_soft_walltime(planned)
            self.log("planned", planned)

    def modifyjob(self):
        job = self.job
        asked = job.asked
        if names_resource(asked, "soft_walltime"):
            return  # who may ask for one of their own, or for none, gets the server's answer to it
        before = job.soft_walltime_s
        if before is None or not self.may_be_ours():
            return
        if before < SHORTEST_SOFT_WALLTIME_S:
            job.set_soft_walltime(None)
            self.log("cleared", reason="too-short")
            return
        walltime = job.walltime_s() if names_resource(asked, "walltime") else None
        # First what must not fail for want of a table: or the server refuses the user's request.
        if job.shrinks_to_fit():
            job.set_plain()
            self.log("cleared", reason="shrink-to-fit")
            return
        if walltime is not None and walltime < before:
            self.lower(walltime)  # planned with all of it now
            return
        if job.runs():
            return  # to raise soft_walltime now would have the server refuse its user's request
        # A planned job stays planned without a table, so it is judged without one, too.
        try:
            self.requested_time = job.walltime_s()
            try:
                config = self.config()
            except LeftAlone:
                config = dict(DEFAULTS)
            check_plain(job, self.requested_time, config, self.now)
            try:
                table = self.table(config)
            except LeftAlone:
                return
            check_excluded(table, job, self.requested_time, self.now)
        except LeftAlone as left:
            if left.reason != "too-slow":
                job.set_plain()
                self.log("cleared", job.soft_walltime_s, left.reason, left.detail)

    def runjob(self):
        job = self.job
        before = job.soft_walltime_s
        walltime = job.walltime_s()
        # It got here by ways that the server does not check, such as another queue's default.
        if before is not None and self.may_be_ours():
            if walltime is None:  # qmove may leave it so, and runs no hook that may change the job
                job.set_soft_walltime(None)
                self.log("cleared", reason="no-limit")
            elif before > walltime:
                self.lower(walltime)
            elif before < SHORTEST_SOFT_WALLTIME_S:
                job.set_soft_walltime(None)
                self.log("cleared", reason="too-short")
        config = self.config()
        submitted = seconds(job.get("ctime"))
        if submitted is None or self.now - submitted < config["readjust_after_s"]:
            return
        before = job.soft_walltime_s
        try:
            table = self.table(config)
            if table.written <= submitted:
                return
            planned = self.plan(config, table)
        except LeftAlone as left:
            if left.reason in ("table", "disabled", "off", "too-slow") or before is None:
                return
            if self.mode == b"enforce" and before != walltime:
                job.set_plain()
                self.log("cleared", job.soft_walltime_s, left.reason, left.detail)
            return
        if self.mode == b"observe":
            self.log("observed", planned, reason="aged")
        elif planned != before:
            job.set_soft_walltime(planned)
            self.log("readjusted", planned, reason="aged")


def write_log(level, text):
    """Write a line to the server's log: printable ASCII, of bounded length."""
    text = "".join(letter if " " <= letter <= "~" else "?" for letter in text[:1000])
    pbs.logmsg(level, text)


def main():
    event = pbs.event()
    try:
        for kind in ("queuejob", "modifyjob", "runjob"):
            if event.type == getattr(pbs, kind.upper()):
                run = Run(event, kind)
                try:
                    getattr(run, kind)()
                finally:
                    run.close()
    except BaseException as problem:  # an alarm comes as KeyboardInterrupt
        try:
            left = "%s: %s" % (type(problem).__name__, getattr(problem, "detail", "") or problem)
            write_log(getattr(pbs, "EVENT_ERROR", 1), "foretime: a job is left alone: " + left)
        except BaseException:
            pass
    event.accept()


main()
