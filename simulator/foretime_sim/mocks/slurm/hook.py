"""Runs a site's job_submit.lua, and the shipped hook in it, as slurmctld's lua plugin would."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from foretime_estimators.jobs.errors import InputError

from foretime_sim.mocks.plugin_files import plugin_file

LUA_VERSIONS = ("5.1", "5.2", "5.3", "5.4", "luajit")
_MODULES = {
    "5.1": "lupa.lua51",
    "5.2": "lupa.lua52",
    "5.3": "lupa.lua53",
    "5.4": "lupa.lua54",
    "luajit": "lupa.luajit21",
}

Value: TypeAlias = "int | float | str | bool"
LuaObject: TypeAlias = Any  # lupa has no types
Fields: TypeAlias = Mapping[str, Value]

# Fields that Slurm's job_submit/lua reads from a request, and what an unset number reads as; of
# the others only strings are named, for they read nil when unset. Those that it can write follow.
_NUMBERS = {
    4294967294: (
        "cpus_per_task het_job_offset max_nodes min_cpus min_nodes nice ntasks_per_node num_tasks"
        " pn_min_cpus priority site_factor time_limit time_min max_cpus"
    ),
    65534: "shared oversubscribe",
    0: "begin_time end_time bitflags",
}
_UNSET_16_BIT = "cpus_per_task ntasks_per_node pn_min_cpus"
_STRINGS = (
    "account admin_comment array_inx burst_buffer clusters comment default_account default_qos"
    " dependency exc_nodes extra features gres licenses mail_user mcs_label name partition qos"
    " req_nodes reservation script tres_per_job tres_per_node user_name wckey work_dir"
)
_READ_ONLY = "default_account default_qos het_job_offset user_id user_name"

_FAKE = r"""
local numbers, strings, read_only, to_number = ...
local NO_VAL = 4294967294
local lines, now = {}, nil
local real_time = os.time

-- The virtual clock.
os.time = function(at)
  if at or not now then return real_time(at) end
  return now
end

local function logger(level)
  return function(...)
    lines[#lines + 1] = level .. " " .. string.format(...)
  end
end

slurm = {
  SUCCESS = 0, ERROR = -1, FAILURE = -1, ESLURM_INVALID_TIME_LIMIT = 2051,
  NO_VAL = to_number(NO_VAL), NO_VAL8 = 254, NO_VAL16 = 65534,
  NO_VAL64 = to_number(18446744073709551614), INFINITE = to_number(4294967295),
  log_info = logger("info"), log_debug = logger("debug"), log_debug2 = logger("debug"),
  log_debug3 = logger("debug"), log_debug4 = logger("debug"), log_verbose = logger("verbose"),
  log_error = function(...) lines[#lines + 1] = "error " .. string.format(...); return -1 end,
  log_user = logger("user"),
}
slurm.error, slurm.info, slurm.user_msg = slurm.log_error, slurm.log_info, slurm.log_user

-- A request: an empty table whose metatable reads and writes the record behind it.
local function request(record, changes)
  return setmetatable({}, {
    __index = function(_, field)
      local value = record[field]
      if value == nil then return numbers[field] end
      return value
    end,
    __newindex = function(_, field, value)
      if read_only[field] or not (numbers[field] or strings[field]) then
        error("_set_job_field: unrecognized field: " .. tostring(field))
      end
      if strings[field] then
        if type(value) ~= "string" and type(value) ~= "number" then
          error("bad argument: string expected for " .. field)
        end
        value = tostring(value)
        record[field] = value ~= "" and value or nil
      else
        local number = tonumber(value)
        if not number or number < 0 or number > 18446744073709551615 then
          error("bad argument: number expected for " .. field)
        end
        value = to_number(number - number % 1)
        record[field] = value
      end
      changes[#changes + 1], changes[#changes + 2] = field, value
    end,
  })
end

local function record_of(fields)
  return setmetatable({}, {
    __index = fields,
    __newindex = function(_, field) error("read-only record: " .. tostring(field)) end,
  })
end

local function taken()
  local log = lines
  if #log == 0 then return nil end
  lines = {}
  return table.concat(log, "\0")
end

local function outcome(done, code, changes)
  if not done then
    -- Slurm logs it and accepts the job.
    lines[#lines + 1] = "error " .. tostring(code)
    code = 0
  end
  return code, taken(), (unpack or table.unpack)(changes)
end

local function float_all(fields)
  for name, value in pairs(fields) do
    if type(value) == "number" then fields[name] = to_number(value) end
  end
  return fields
end

return {
  set_clock = function(at) now = at end,
  partitions = function(list)
    local all = {}
    for name, fields in pairs(list) do all[name] = record_of(float_all(fields)) end
    return all
  end,
  submit = function(fields, partitions, uid)
    local changes = {}
    local job = request(float_all(fields), changes)
    local done, code = pcall(slurm_job_submit, job, partitions, to_number(uid))
    return outcome(done, code, changes)
  end,
  modify = function(fields, record, partitions, uid)
    local changes = {}
    -- As Slurm shows a job of one part, too (seen on 22.05 and 26.05).
    fields.het_job_offset = fields.het_job_offset or 0
    for _, field in ipairs({ "het_job_id", "het_job_offset", "array_job_id" }) do
      record[field] = record[field] or 0
    end
    local job = request(float_all(fields), changes)
    local done, code = pcall(slurm_job_modify, job, record_of(float_all(record)), partitions,
      to_number(uid))
    return outcome(done, code, changes)
  end,
  log = taken,
}
"""


@dataclass(frozen=True, slots=True)
class HookReply:
    """What a call of the script came to.

    Attributes
    ----------
    code
        The script's return code; 0 is ``slurm.SUCCESS``.
    changes
        Fields of the request that the script wrote, with their last value; numbers as int.
    log
        Lines that it wrote, each beginning with its level (``info``, ``error``, ``user``, ...).
    """

    code: int
    changes: dict[str, int | str]
    log: list[str]


_UNCHANGED: dict[str, int | str] = {}


class LuaHook:
    """A job_submit script, loaded once and called for each submission and modification.

    It sees what Slurm's job_submit/lua plugin shows: numbers as Lua floats, unset numbers as
    ``slurm.NO_VAL`` and unset strings as nil, a job that is an empty table with ``__index`` and
    ``__newindex``, an unreadable field as nil. Writing a field that Slurm would not take raises an
    error, where Slurm only logs one. A script that raises is logged and the job accepted, as there.

    Parameters
    ----------
    script
        The site's job_submit.lua; the shipped one by default.
    lua_version
        One of `LUA_VERSIONS`; Slurm is built with one of them.
    table, disable_file
        Paths given to ``foretime.configure`` after loading, in place of the script's own.
    foretime
        The hook's module file, found by ``require "foretime"``; the shipped one by default.
    configure
        More settings for ``foretime.configure``.

    Raises
    ------
    InputError
        If the script can't be read or doesn't load (slurmctld would not start), or lupa has no
        such Lua version.

    Examples
    --------
    >>> from foretime_sim.mocks.slurm.hook import LuaHook
    >>> LuaHook(lua_version="5.3").script.name
    'job_submit.lua'
    """

    def __init__(
        self,
        script: Path | None = None,
        *,
        lua_version: str = "5.3",
        table: Path | None = None,
        disable_file: Path | None = None,
        foretime: Path | None = None,
        configure: Mapping[str, Value] | None = None,
    ) -> None:
        if lua_version not in _MODULES:
            raise InputError(f"lua_version {lua_version!r} is none of {', '.join(LUA_VERSIONS)}")
        try:
            lupa = importlib.import_module(_MODULES[lua_version])
        except ImportError as error:
            raise InputError(
                f"running the hook needs lupa with Lua {lua_version}: pip install 'foretime[sim]'"
            ) from error
        self.script = script or plugin_file("slurm/job_submit.lua")
        self._lua: Any = lupa.LuaRuntime(
            unpack_returned_tuples=True,
            register_eval=False,
            register_builtins=False,
            encoding="utf-8",
        )
        self._error: type[Exception] = lupa.LuaError
        self._fake = self._load_fake(lua_version)
        self._submit, self._modify = self._fake.submit, self._fake.modify
        self._set_clock = self._fake.set_clock
        self._partitions: Any = None
        self._partitions_from: Mapping[str, Fields] | None = None
        self._load_script(foretime or plugin_file("slurm/foretime.lua"))
        settings = dict(configure or {})
        if table is not None:
            settings["table"] = str(table)
        if disable_file is not None:
            settings["disable_file"] = str(disable_file)
        if settings:
            self.configure(settings)

    def _load_fake(self, lua_version: str) -> LuaObject:
        numbers = {
            name: 65534 if name in _UNSET_16_BIT.split() else unset
            for unset, names in _NUMBERS.items()
            for name in names.split()
        }
        names = dict.fromkeys(_STRINGS.split(), True)
        read_only = dict.fromkeys(_READ_ONLY.split(), True)
        table_from = self._lua.table_from
        # Slurm hands every number to Lua as a C double.
        to_number = self._lua.eval("function(value) return value + 0.0 end")
        unset = {name: to_number(value) for name, value in numbers.items()}
        load = self._lua.eval("function(text) return assert((loadstring or load)(text)) end")
        return load(_FAKE)(table_from(unset), table_from(names), table_from(read_only), to_number)

    def _load_script(self, foretime: Path) -> None:
        load = self._lua.eval(
            "function(script, foretime)"
            " package.preload.foretime = function() return dofile(foretime) end"
            " dofile(script)"
            " assert(type(slurm_job_submit) == 'function', 'no function slurm_job_submit')"
            " assert(type(slurm_job_modify) == 'function', 'no function slurm_job_modify')"
            " end"
        )
        try:
            load(str(self.script), str(foretime))
        except self._error as error:
            raise InputError(f"{self.script}: {error}") from error
        self.loading_log = self._lines(self._fake.log())

    def configure(self, settings: Mapping[str, Value]) -> None:
        """Call ``foretime.configure`` of the module that the script loaded, as given here alone."""
        loaded = self._lua.eval("package.loaded.foretime")
        if loaded is None:
            raise InputError(f"{self.script}: it did not load foretime with require")
        loaded.configure(self._lua.table_from(settings))

    def set_clock(self, now: int | None) -> None:
        """Make ``os.time()`` answer this, epoch seconds; ``None`` for the real clock."""
        self._set_clock(now)

    def submit(
        self, job: Fields, partitions: Mapping[str, Fields], uid: int, now: int | None = None
    ) -> HookReply:
        """Call ``slurm_job_submit``.

        Parameters
        ----------
        job
            Fields of the request by Slurm's names (``time_limit`` in minutes); leave out unset.
        partitions
            slurm_partitions that the user may use, by name: ``max_time`` in minutes,
            ``flag_default`` and so on. One object is converted once: don't change it, give another.
        uid
            Who submits.
        now
            As `set_clock`.
        """
        if now is not None:
            self._set_clock(now)
        return self._reply(
            self._submit(self._lua.table_from(job), self._part_list(partitions), uid)
        )

    def modify(
        self,
        request: Fields,
        job: Fields,
        partitions: Mapping[str, Fields],
        uid: int,
        now: int | None = None,
    ) -> HookReply:
        """Call ``slurm_job_modify`` with the requested changes and the job as it is."""
        if now is not None:
            self._set_clock(now)
        table_from = self._lua.table_from
        return self._reply(
            self._modify(table_from(request), table_from(job), self._part_list(partitions), uid)
        )

    def _part_list(self, partitions: Mapping[str, Fields]) -> LuaObject:
        if partitions is not self._partitions_from:
            table_from = self._lua.table_from
            self._partitions = self._fake.partitions(
                table_from({name: table_from(fields) for name, fields in partitions.items()})
            )
            self._partitions_from = partitions
        return self._partitions

    def _reply(self, returned: tuple[Any, ...]) -> HookReply:
        code, log = returned[0], returned[1]
        changes = _UNCHANGED
        if len(returned) > 2:
            changes = {
                returned[at]: value if isinstance(value, str) else int(value)
                for at, value in zip(range(2, len(returned), 2), returned[3::2], strict=True)
            }
        return HookReply(int(code) if code is not None else 0, changes, self._lines(log))

    @staticmethod
    def _lines(log: str | None) -> list[str]:
        return [] if log is None else log.split("\0")
