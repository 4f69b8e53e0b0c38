"""A Lua state of a shared library, as a program: loads a script as slurmctld's plugin would.

`foretime_sidecar.install.lua_trial` runs it as a file, by a bare Python in a process of its own: it
imports nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

_PRELUDE = """
local function quiet() end
slurm = setmetatable({ SUCCESS = 0, ERROR = -1, FAILURE = -1, NO_VAL = 4294967294,
  NO_VAL16 = 65534, NO_VAL64 = 1.8446744073709552e19, NO_VAL8 = 254, INFINITE = 4294967295 },
  { __index = function(_, name)
    -- Slurm has more names than are listed here: functions in small letters, numbers in capitals.
    if string.find(name, "^[A-Z]") then return 0 end
    return quiet
  end })
"""
_CHECK = """
assert(type(slurm_job_submit) == "function", "it has no function slurm_job_submit")
assert(type(slurm_job_modify) == "function", "it has no function slurm_job_modify")
"""


class LuaState:
    """A Lua state of a shared library, 5.1 to 5.4."""

    def __init__(self, library: str) -> None:
        lua = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        lua.luaL_newstate.restype = ctypes.c_void_p
        lua.lua_tolstring.restype = ctypes.c_char_p
        self._lua = lua
        self._state = ctypes.c_void_p(lua.luaL_newstate())
        lua.luaL_openlibs(self._state)

    def run(self, text: bytes, name: bytes) -> None:
        """Run a text; RuntimeError with what Lua says."""
        lua, state = self._lua, self._state
        load = getattr(lua, "luaL_loadbufferx", None) or lua.luaL_loadbuffer
        code = load(state, text, ctypes.c_size_t(len(text)), name, None)
        if not code:
            call = getattr(lua, "lua_pcallk", None)
            # lua_pcall has four parameters, lua_pcallk two more.
            code = call(state, 0, 0, 0, None, None) if call else lua.lua_pcall(state, 0, 0, 0)
        if code:
            said = lua.lua_tolstring(state, -1, None)
            raise RuntimeError((said or b"?").decode("utf-8", "replace"))


def main(library: str, script: str) -> int:
    """Load a script; exit code 0 if it can be, else 1 and why on stderr."""
    try:
        lua = LuaState(library)
        lua.run(_PRELUDE.encode(), b"=slurm")
        lua.run(Path(script).read_bytes(), f"@{script}".encode())
        lua.run(_CHECK.encode(), b"=it")
    except (OSError, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
