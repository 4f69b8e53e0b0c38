-- Foretime's hook for Slurm's job_submit/lua plugin: plans jobs with how long they really take.
--
-- A site's own job_submit.lua loads this file and calls it in one line:
--
--     local loaded, foretime = pcall(dofile, "/etc/slurm/foretime.lua")
--     ...
--     if loaded then foretime.submit(job_desc, part_list, submit_uid) end
--
-- It reads one file, the table (TABLE.md), and nothing else. It never raises an error, rejects a
-- job or returns a value; on any doubt the job goes through untouched. Lua 5.1 to 5.4 and LuaJIT.

local FORMAT = "1"
local PREFIX_BYTES = 256
local SMALLEST_TABLE_BYTES = 100
local MICRO = 1000000
-- Slurm says "unset" and "no limit" with the two highest 32-bit numbers.
local NO_VAL = 4294967294
local INFINITE = 4294967295 -- what --time-min=0 and UNLIMITED become
local NO_VAL16 = 65534 -- the same for its 16-bit fields
-- Beyond this t_req * A would no longer be exact in a Lua 5.1 number (2^53).
local LONGEST_REQUEST_S = 4000000000
-- A clock may be set back; a table from further in the future than this isn't believed.
local CLOCK_TOLERANCE_S = 3600
local RETRY_FAULTY_S = 60
local MOST_CACHED = 100000
local DAY_S = 86400
local ENOENT, EPERM, EACCES, ETXTBSY, EROFS = 2, 1, 13, 26, 30

local byte, find, format, match, sub = string.byte, string.find, string.format, string.match,
  string.sub
local floor, fmod, max, min = math.floor, math.fmod, math.max, math.min

local foretime = {}

local config      -- what the site chose
local cached      -- the table as last read, valid or not
local log_lines   -- when a kind of line was last written, and how many were not since
local advice      -- whom this state has told what their jobs use, and when; and since when it is
local array_request -- what may be one request for several tasks of an array

-- Logging -------------------------------------------------------------------------------------

local function log(level, kind, text, ...)
  local line = log_lines[kind]
  if not line then
    line = { skipped = 0 }
    log_lines[kind] = line
  end
  local now = os.time()
  if line.at and now >= line.at and now - line.at < config.log_interval_s then
    line.skipped = line.skipped + 1
    return
  end
  text = format(text, ...)
  if line.skipped > 0 then
    text = format("%s (and %d more since the last such line)", text, line.skipped)
  end
  line.at, line.skipped = now, 0
  -- Names and damaged tables may hold anything.
  text = string.gsub(sub(text, 1, 300), "[^ -~]", "?")
  -- Slurm's loggers take a format string.
  level("foretime: %s", text)
end

-- Reading the table ---------------------------------------------------------------------------

-- A polynomial over the bytes, modulo the largest prime below 2^32; exact in every Lua.
local function check(text)
  local sum = 1
  for i = 1, #text do
    sum = (sum * 65599 + byte(text, i)) % 4294967291
  end
  return sum
end

local function percent(character)
  return format("%%%02X", byte(character))
end

local function encode(name)
  return (string.gsub(name, "[^A-Za-z0-9._-]", percent))
end

-- Slurm finds accounts and QOS without regard to case. Of an encoded name, so plain ASCII.
local function folded(name)
  return (string.gsub(name, "[A-Z]", string.lower))
end

-- Opening a FIFO for reading alone would block slurmctld until somebody writes into it; opening
-- it for reading and writing does not, and it then shows itself by refusing to seek. A file that
-- we may only read can't be tested in this way: its folder must belong to who we trust.
local function open_file(path)
  local file, message, code = io.open(path, "r+")
  if not file and (code == EACCES or code == EROFS or code == EPERM or code == ETXTBSY) then
    file, message = io.open(path, "r")
  end
  return file, message
end

local function disabled()
  local path = config.disable_file
  if not path then
    return false
  end
  local file, _, code = io.open(path, "r+")
  if file then
    file:close()
    return true
  end
  return code ~= ENOENT -- there but not ours to open, or not to be told: off is the safe answer
end

local function set_of(text)
  local set = {}
  for word in string.gmatch(text, "[^,]+") do
    set[word] = true
  end
  return set
end

local modes = { observe = true, advise = true, enforce = true }

local choices = {
  scheme = { user = true, project = true, combined = true, learned = true },
  mechanism = {
    ["time-min"] = { field = "time_min" },
    ["time-min-at-look"] = { at_look = true },
    ["rewrite-limit"] = { field = "time_limit", rewrites = true },
    ["rewrite-limit-at-look"] = { rewrites = true, at_look = true },
  },
  user_time_min = { raise = true, keep = true, clear = true },
}

local function micro(text)
  local whole, fraction = match(text, "^([01])%.(%d%d%d%d%d%d)$")
  local value = whole and tonumber(whole) * MICRO + tonumber(fraction)
  return value and value <= MICRO and value or nil
end

-- Ascending whole numbers parted by commas, "-" for none; nil for anything else.
local function numbers(text)
  local found = {}
  if text == "-" then
    return found
  end
  for word in string.gmatch(text .. ",", "([^,]*),") do
    if not match(word, "^%d+$") then
      return nil
    end
    found[#found + 1] = tonumber(word)
  end
  return found
end

local kind_times = {
  ["request"] = { exact = true },
  ["request+size"] = { exact = true, sized = true },
  ["class"] = {},
  ["class+size"] = { sized = true },
}

-- A kind of jobs that the scheme learned has rows of, such as user+request+size; nil for others.
local function kind_of(word)
  local who, times = match(word, "^(%l+)%+(.+)$")
  if who ~= "user" and who ~= "project" then
    who, times = nil, word
  end
  times = kind_times[times]
  return times and { word = word, who = who, exact = times.exact, sized = times.sized }
end

local parsers = {
  mode = function(text) return match(text, "^%l+$") end,
  enforce_share_percent = function(text)
    local value = match(text, "^%d+$") and tonumber(text)
    return value and value <= 100 and value or nil
  end,
  scheme = function(text) return choices.scheme[text] and text end,
  mechanism = function(text) return choices.mechanism[text] end,
  user_time_min = function(text) return choices.user_time_min[text] and text end,
  minimum_adjustment = micro,
  minimum_scheduled_time_s = function(text) return match(text, "^%d+$") and tonumber(text) end,
  rounding_s = function(text)
    local value = match(text, "^%d+$") and tonumber(text)
    return value and value >= 1 and value or nil
  end,
  requested_time_bounds_s = numbers,
}

local function number(value)
  return type(value) == "number" and value > 0 and value < NO_VAL and value or nil
end

local function text(value)
  return type(value) == "string" and value ~= "" and value or nil
end

local function project_of(job)
  return text(job.account) or text(job.default_account)
end

-- Since Slurm 24.11 a job may name several QOS.
local function add_parted(names, text)
  for name in string.gmatch(text or "", "[^,]+") do
    names[#names + 1] = match(name, "^%s*(.-)%s*$")
  end
end

-- The kinds of names that a table knows (TABLE.md), and a job's names of each kind. `without_case`:
-- Slurm finds them without regard to case. `only`: enforce can be limited to such names.
local kinds = {
  user = { names = function(job) return { text(job.user_name) } end },
  account = { without_case = true, only = true,
    names = function(job) return { project_of(job) } end },
  slurm_partition = { only = true, names = function(_, records)
    local names = {}
    for name in pairs(records) do
      names[#names + 1] = name
    end
    return names
  end },
  qos = { without_case = true, names = function(job, records)
    local names = {}
    -- "normal" is Slurm's own choice for a job that names none, and whose user has no default.
    add_parted(names, text(job.qos) or text(job.default_qos) or "normal")
    for _, record in pairs(records) do
      add_parted(names, text(record.qos))
    end
    return names
  end },
  queue = { only = true, names = function() return {} end }, -- PBS', in which no job is here
}

local function as_compared(kind, encoded)
  return kinds[kind] and kinds[kind].without_case and folded(encoded) or encoded
end

local repeated = {
  leave = function(settings, text)
    local kind, name = match(text, "^(%S+) (%S+)$")
    if not settings.leave[kind] then
      return nil
    end
    settings.leave[kind][as_compared(kind, name)] = true
    return true
  end,
  longest = function(settings, text)
    local kind, name, seconds = match(text, "^(%S+) (%S+) (%d+)$")
    local of_kind = kind and settings.longest[kind]
    if not of_kind then
      return nil
    end
    name, seconds = as_compared(kind, name), tonumber(seconds)
    of_kind[name] = min(of_kind[name] or seconds, seconds)
    return true
  end,
  only = function(settings, text)
    local kind, name = match(text, "^(%S+) (%S+)$")
    if not (kinds[kind] and kinds[kind].only) then
      return nil
    end
    settings.only[kind] = settings.only[kind] or {}
    settings.only[kind][as_compared(kind, name)] = true
    return true
  end,
  told = function(settings, text)
    local name, at = match(text, "^(%S+) (%d+)$")
    if not name or settings.told[name] then
      return nil
    end
    settings.told[name] = tonumber(at)
    return true
  end,
  told_until = function(settings, text)
    if settings.told_until or not match(text, "^%d+$") then
      return nil
    end
    settings.told_until = tonumber(text)
    return true
  end,
  -- For PBS: here each job's note says whether it was planned.
  unplanned_since = function(settings, text)
    if settings.unplanned_since or not match(text, "^%d+$") then
      return nil
    end
    settings.unplanned_since = tonumber(text)
    return true
  end,
  size_bounds = function(settings, text)
    if settings.size_bounds then
      return nil
    end
    settings.size_bounds = numbers(text)
    return settings.size_bounds
  end,
  backoff = function(settings, text)
    if settings.backoff then
      return nil
    end
    settings.backoff = {}
    for word in string.gmatch(text .. ",", "([^,]*),") do
      local kind = kind_of(word)
      if not kind then
        return nil
      end
      settings.backoff[#settings.backoff + 1] = kind
    end
    return true
  end,
  median_wait_s = function(settings, text)
    local class, seconds = match(text, "^(%d+) (%d+)$")
    class = tonumber(class)
    if not class or settings.median_wait_s[class] then
      return nil
    end
    settings.median_wait_s[class] = tonumber(seconds)
    return true
  end,
  reservation = function(settings, text)
    local start, stop, partitions = match(text, "^(%d+) (%d+) (%S+)$")
    if not start then
      return nil
    end
    settings.reservations[#settings.reservations + 1] = {
      start = tonumber(start),
      stop = tonumber(stop),
      partitions = partitions ~= "*" and set_of(partitions) or nil,
    }
    return true
  end,
}

-- The settings between the first line and the first bucket, or nil and what is wrong.
local function parse_settings(text)
  local settings = {
    leave = {}, longest = { any = {} }, reservations = {}, only = {}, told = {},
    median_wait_s = {},
  }
  for kind in pairs(kinds) do
    settings.leave[kind], settings.longest[kind] = {}, {}
  end
  for line in string.gmatch(text, "([^\n]*)\n") do
    local key, value = match(line, "^(%S+) (.+)$")
    if repeated[key] then
      if not repeated[key](settings, value) then
        return nil, "a setting that can't be read: " .. line
      end
    elseif parsers[key] and settings[key] == nil then
      settings[key] = parsers[key](value)
      if not settings[key] then
        return nil, "a setting that can't be read: " .. line
      end
    else
      return nil, "a setting that this hook doesn't know: " .. line
    end
  end
  for key in pairs(parsers) do
    if settings[key] == nil then
      return nil, "no setting " .. key
    end
  end
  if settings.scheme == "learned" and not (settings.backoff and settings.size_bounds) then
    return nil, "no setting backoff or size_bounds"
  end
  return settings
end

-- Everything but the rows is checked here; a bucket of rows is when a job needs it.
local function parse(data)
  local line = match(data, "^([^\n]*)\n")
  local version = line and match(line, "^foretime%-table (%S+) ")
  if not version then
    return nil, "not a Foretime table"
  end
  if version ~= FORMAT then
    return nil, "a table of version " .. version .. ", this hook reads " .. FORMAT
  end
  local generation, length, head, written, valid, buckets = match(line,
    "^foretime%-table %S+ generation=(%d+) length=(%d+) head=(%d+) written=(%d+) valid=(%d+)"
      .. " buckets=(%d+)$")
  if not generation then
    return nil, "its first line can't be read"
  end
  local trailer = format("end generation=%s length=%s\n", generation, length)
  if tonumber(length) ~= #data or sub(data, -#trailer) ~= trailer then
    return nil, "cut short or not of one piece"
  end
  head, buckets = tonumber(head), tonumber(buckets)
  local sum = match(sub(data, head + 1, head + 17), "^check (%d%d%d%d%d%d%d%d%d%d)\n$")
  if not sum or tonumber(sum) ~= check(sub(data, 1, head)) then
    return nil, "its settings are damaged"
  end
  local settings, problem = parse_settings(sub(data, #line + 2, head))
  if not settings then
    return nil, problem
  end
  settings.generation = generation
  settings.written, settings.valid = tonumber(written), tonumber(valid)
  settings.data, settings.buckets = data, buckets
  settings.rows_end = #data - #trailer
  settings.cache, settings.cached = {}, 0
  return settings
end

-- Reads the table anew if it has changed; its first line differs in every generation.
local function read_table(now)
  if not config.table then
    return nil, "no table is configured"
  end
  local file, message = open_file(config.table)
  if not file then
    cached = nil
    return nil, message
  end
  local size = file:seek("end")
  if not size or size < SMALLEST_TABLE_BYTES or size > config.largest_table_bytes then
    file:close()
    cached = nil
    return nil, "not a table, or one over largest_table_bytes"
  end
  file:seek("set", 0)
  local prefix = file:read(PREFIX_BYTES)
  if cached and cached.prefix == prefix and cached.size == size
    and (not cached.fault or now - cached.read_at < RETRY_FAULTY_S) then
    file:close()
    return cached.table, cached.fault
  end
  -- A rename meanwhile doesn't matter: this is still the file that the prefix came from.
  file:seek("set", 0)
  local data = file:read(size)
  file:close()
  local result, fault
  if data and sub(data, 1, PREFIX_BYTES) == prefix then
    result, fault = parse(data)
  else
    fault = "it changed while it was read"
  end
  cached = { prefix = prefix, size = size, table = result, fault = fault, read_at = now }
  return result, fault
end

-- The table if jobs may be planned with it now, else nil and why not.
local function usable_table(now)
  if disabled() then
    return nil
  end
  local result, problem = read_table(now)
  if result and now > result.valid then
    result, problem = nil, "out of date"
  elseif result and result.written > now + CLOCK_TOLERANCE_S then
    result, problem = nil, "written in the future: has a clock been set?"
  end
  if not result then
    log(slurm.log_info, "table", "jobs are left alone: table %s: %s", config.table or "-",
      tostring(problem))
  elseif not modes[result.mode] then
    return nil
  end
  return result
end

-- The rows of the bucket that a name's are in, nil if the table is damaged there.
local function rows_of(t, name)
  local tag = format("#%06d ", check(name) % t.buckets)
  if t.last_tag == tag then
    return t.last_rows -- a job's rows are mostly in one
  end
  local start = find(t.data, tag, 1, true)
  local line_end = start and find(t.data, "\n", start, true)
  if not line_end then
    return nil
  end
  local next_start = find(t.data, "#", line_end, true)
  local rows = sub(t.data, line_end, next_start and next_start - 1 or t.rows_end)
  local sum = match(sub(t.data, start + #tag, line_end - 1), "^%d%d%d%d%d%d%d%d%d%d$")
  if not sum or tonumber(sum) ~= check(rows .. tag .. t.generation) then
    return nil
  end
  t.last_tag, t.last_rows = tag, rows
  return rows
end

-- A row: its adjustment in millionths and the largest job (processor-seconds) that it applies to,
-- nil for any; false where the table has no such row, nil if the table is damaged there.
-- The bucket's check covers the absence of a row as well as its value.
local function find_row(t, name, row)
  local rows = rows_of(t, name)
  if not rows then
    return nil
  end
  local _, key_end = find(rows, row, 1, true)
  if not key_end then
    return false
  end
  local value, largest = match(rows, "^(%S+) (%S+)\n", key_end + 1)
  value = value and (largest == "-" or match(largest, "^%d+$")) and micro(value)
  return value and { adjustment = value, largest = tonumber(largest) } or nil
end

local function row_of(t, scope, name, class)
  local key = scope .. " " .. class .. " " .. name
  local value = t.cache[key]
  if value == nil then
    local encoded = encode(name)
    value = find_row(t, encoded, format("\n%s %s %s ", scope, encoded, class))
    if value == nil then
      log(slurm.log_error, "damaged", "jobs are left alone: table %s is damaged at %s %s",
        config.table, scope, encoded)
      return nil
    end
    if t.cached >= MOST_CACHED then
      t.cache, t.cached = {}, 0
    end
    t.cache[key], t.cached = value, t.cached + 1
  end
  return value
end

-- The computation -----------------------------------------------------------------------------

-- The next multiple of a unit; with fmod, for Lua 5.1's % and / lose digits near 2^53.
local function round_up(value, unit)
  local remainder = fmod(value, unit)
  return remainder > 0 and value - remainder + unit or value
end

-- The adjustment in millionths that a row gives a job of this size, if it gives one.
local function applicable(row, processor_seconds)
  if row and not (row.largest and processor_seconds > row.largest) then
    return row.adjustment
  end
  return nil
end

local function class_of(bounds, value)
  local class = 0
  for i = 1, #bounds do
    if bounds[i] < value then
      class = i
    end
  end
  return class
end

-- A of the user's and the project's rows (Tang 2010, equation 5), nil without one.
local function mean_adjustment(t, user, project, processor_seconds, requested_time)
  local class = format("%d", class_of(t.requested_time_bounds_s, requested_time))
  local user_row, project_row = false, false
  if t.scheme ~= "project" and user then
    user_row = row_of(t, "user", user, class)
  end
  if t.scheme ~= "user" and project then
    project_row = row_of(t, "project", project, class)
  end
  if user_row == nil or project_row == nil then
    return nil
  end
  local of_user = applicable(user_row, processor_seconds)
  local of_project = applicable(project_row, processor_seconds)
  if of_user and of_project then
    return floor((of_user + of_project + 1) / 2)
  end
  return of_user or of_project
end

-- A of the first kind in the back-off order that has a row for such a job, nil without one.
local function learned_adjustment(t, user, project, processors, requested_time)
  local request = format("%d", requested_time)
  local class = format("%d", class_of(t.requested_time_bounds_s, requested_time))
  local size = format(".%d", class_of(t.size_bounds, processors))
  local names = { user = user, project = project }
  for _, kind in ipairs(t.backoff) do
    local name = kind.who and names[kind.who]
    if name or not kind.who then
      local values = (kind.exact and request or class) .. (kind.sized and size or "")
      local row = row_of(t, kind.word, name or "-", values)
      if row == nil then
        return nil -- one further on must not stand in for it
      end
      local adjustment = applicable(row, processors * requested_time)
      if adjustment then
        return adjustment
      end
    end
  end
  return nil
end

-- t_sched in seconds (Tang 2010, equation 4), nil if the table knows nothing of such a job.
-- Every step is exact: TABLE.md has the same in words.
local function scheduled_time(t, user, project, processors, requested_time)
  local adjustment
  if t.scheme == "learned" then
    adjustment = learned_adjustment(t, user, project, processors, requested_time)
  else
    adjustment = mean_adjustment(t, user, project, processors * requested_time, requested_time)
  end
  if not adjustment then
    return nil
  end
  adjustment = max(adjustment, t.minimum_adjustment)
  local seconds = round_up(round_up(adjustment * requested_time, MICRO) / MICRO, t.rounding_s)
  seconds = round_up(max(seconds, t.minimum_scheduled_time_s, 1), 60)
  return min(seconds, requested_time)
end

-- What is left alone --------------------------------------------------------------------------

-- A user's own --time-min; without end it is one, too: above any limit, so that Slurm rejects it.
local function own_time_min(job)
  return number(job.time_min) or job.time_min == INFINITE and INFINITE or nil
end

local function time_limit_s(job)
  local minutes = number(job.time_limit)
  return minutes and minutes * 60 <= LONGEST_REQUEST_S and minutes * 60 or nil
end

local function number16(value)
  value = number(value)
  return value and value < NO_VAL16 and value or nil
end

-- Processors that a job may get, as far as a submission tells; whole nodes are taken as the
-- average of their slurm_partition.
local function processors_of(job, records)
  local per_task = number16(job.cpus_per_task) or 1
  local nodes = max(number(job.min_nodes) or 1, number(job.max_nodes) or 1)
  local processors = max(number(job.min_cpus) or 1, (number(job.num_tasks) or 1) * per_task,
    nodes * (number16(job.ntasks_per_node) or 1) * per_task)
  for _, record in pairs(records) do
    local cpus, of_nodes = number(record.total_cpus), number(record.total_nodes)
    if (job.shared == 0 or record.max_share == 0) and cpus and of_nodes then
      processors = max(processors, nodes * cpus / of_nodes)
    end
  end
  return processors
end

-- The records of the slurm_partitions a job names or defaults to; nil if one isn't known.
local function partitions_of(job, part_list)
  local records, named = {}, text(job.partition)
  if named then
    for name in string.gmatch(named, "[^,]+") do
      if not part_list[name] then
        return nil
      end
      records[name] = part_list[name]
    end
    return records
  end
  for name, record in pairs(part_list) do
    if number(record.flag_default) then
      records[name] = record
      return records
    end
  end
  return nil
end

local function touches_reservation(t, job, records, requested_time, now)
  if not t.reservations[1] then
    return false
  end
  local start = max(now, number(job.begin_time) or 0)
  for _, reservation in ipairs(t.reservations) do
    if start < reservation.stop and start + requested_time > reservation.start then
      if not reservation.partitions then
        return true
      end
      for name in pairs(records) do
        if reservation.partitions[encode(name)] then
          return true
        end
      end
    end
  end
  return false
end

-- Whether the job must be planned with what its user asked for, as far as that can be told
-- without a table: there a shortened one would be accepted, started or killed where a plain one is
-- not (docs/left_alone.md: V1, V3, V4, V6).
local function must_be_plain(job, records, requested_time)
  local comment = text(job.comment)
  if comment and find(comment, "foretime:off", 1, true) then
    return true
  end
  local component = job.het_job_offset
  if type(component) == "number" and component ~= NO_VAL then
    return true
  end
  if number(job.deadline) or text(job.reservation) then
    return true
  end
  for _, record in pairs(records) do
    local longest = number(record.max_time)
    if longest and requested_time > longest * 60 then
      return true
    end
  end
  -- Slurm doesn't show a deadline to Lua; one written in the script can be seen. This is the
  -- shortest form of the option that Slurm takes.
  local script = text(job.script)
  return script ~= nil and find(script, "--dea", 1, true) ~= nil
end

-- Whether the table says so (docs/left_alone.md: V5).
local function excluded(t, job, records, requested_time)
  local any = t.longest.any["*"]
  if any and requested_time > any then
    return true
  end
  for word, kind in pairs(kinds) do
    local leave, of_kind = t.leave[word], t.longest[word]
    if next(leave) or next(of_kind) then
      for _, name in ipairs(kind.names(job, records)) do
        name = as_compared(word, encode(name))
        local longest = of_kind[name]
        if leave[name] or longest and requested_time > longest then
          return true
        end
      end
    end
  end
  return false
end

-- Whether enforce counts for this job: for a share of users, and where it is limited to names of a
-- kind, for jobs that have such names, and no other ones of that kind.
local function in_share(t, job, user, records)
  local share = t.enforce_share_percent
  if share < 100 and not (user and check(encode(user)) % 100 < share) then
    return false
  end
  for kind, wanted in pairs(t.only) do
    local names = kinds[kind].names(job, records)
    for _, name in ipairs(names) do
      if not wanted[as_compared(kind, encode(name))] then
        return false
      end
    end
    if not names[1] then
      return false
    end
  end
  return true
end

-- Advice --------------------------------------------------------------------------------------

local function duration(seconds)
  local days, rest = floor(seconds / DAY_S), seconds % DAY_S
  local clock = format("%02d:%02d:%02d", floor(rest / 3600), floor(rest % 3600 / 60), rest % 60)
  return days > 0 and format("%d-%s", days, clock) or clock
end

-- Whether to tell this user now: at most once in 24 hours. Two memories know who was told: this
-- state, which an edited script or a restart loses, and the table, which tells of all until
-- told_until. A new state says nothing until a table covers the time before it. No file is written.
local function may_tell(t, name, now)
  if not t.told_until or t.told_until < advice.since then
    return false
  end
  local last = max(advice.told[name] or 0, t.told[name] or 0)
  if last > 0 and now - last < DAY_S then
    return false
  end
  if not advice.told[name] then
    if advice.count >= MOST_CACHED then
      for other, at in pairs(advice.told) do
        if now - at >= DAY_S then
          advice.told[other], advice.count = nil, advice.count - 1
        end
      end
    end
    if advice.count >= MOST_CACHED then
      return false
    end
    advice.count = advice.count + 1
  end
  advice.told[name] = now
  return true
end

-- Tells a user what jobs like this one use, and what asking for less would likely gain.
local function advise(t, user, requested_time, seconds, now)
  if not user or seconds >= requested_time or not may_tell(t, encode(user), now) then
    return
  end
  local gain = "A shorter --time fits into more gaps, and so may start sooner."
  local class = class_of(t.requested_time_bounds_s, seconds)
  local shorter = t.median_wait_s[class]
  local longer = t.median_wait_s[class_of(t.requested_time_bounds_s, requested_time)]
  if shorter and longer and shorter < longer then
    gain = format("Of late jobs with --time up to %s waited %s, those like this one %s (medians).",
      duration(t.requested_time_bounds_s[class + 1]), duration(shorter), duration(longer))
  end
  slurm.log_user("foretime: jobs like this one mostly ended within %s, and it asks for %s. %s A "
    .. "job is ended at its --time: leave some to spare. Nothing was changed; this is said at "
    .. "most once a day.", duration(seconds), duration(requested_time), gain)
end

-- Submission ----------------------------------------------------------------------------------

-- Where jobs are planned, a note is believed, so one that comes with a submission is taken out.
-- Slurm takes an AdminComment from operators alone.
local function without_note(comment)
  local rest = string.gsub(comment, "%s*foretime:treq=[^%s]*", "")
  return (string.gsub(rest, "^%s+", ""))
end

-- What was decided, for the prolog, the sidecar and its watchdog (TABLE.md, "The note").
local function note(t, job, requested_time, field, minutes, own)
  local words = format("foretime:treq=%d,%s=%d,generation=%s", requested_time / 60, field, minutes,
    t.generation)
  if field == "tmin" and t.scheme == "learned" then
    words = words .. ",learned=1"
  end
  if own then
    words = format("%s,own=%d", words, own)
  end
  local others = text(job.admin_comment)
  job.admin_comment = others and words .. " " .. others or words -- readers may cut it
end

-- At the look the sidecar sets it, which sees more of the job than Lua does.
local function set_planned(t, job, minutes)
  local field = t.mechanism.field
  if field then
    job[field] = minutes
  end
end

local function apply(t, job, requested_time, seconds)
  local minutes = floor(seconds / 60)
  if t.mechanism.rewrites then
    if seconds < requested_time then
      note(t, job, requested_time, "tsched", minutes)
      set_planned(t, job, minutes)
    end
    return
  end
  local own = own_time_min(job)
  if own then
    -- One above the limit is Slurm's to reject.
    if own > requested_time / 60 or own == minutes or t.user_time_min == "keep"
      or t.user_time_min == "raise" and own > minutes then
      return
    end
  elseif seconds >= requested_time then
    return
  end
  note(t, job, requested_time, "tmin", minutes, own)
  set_planned(t, job, minutes)
end

local function submit(job, part_list)
  local now = os.time()
  local t = usable_table(now)
  local forged = t and t.mode == "enforce" and text(job.admin_comment)
  if forged and find(forged, "foretime:treq=", 1, true) then
    job.admin_comment = without_note(forged)
  end
  local requested_time = t and time_limit_s(job)
  if not requested_time then
    return
  end
  local user = text(job.user_name)
  local project = project_of(job)
  if t.mechanism.rewrites and own_time_min(job) then
    return -- there time_min is the user's own floor of the kill limit
  end
  local records = partitions_of(job, part_list)
  if not records then
    return
  end
  local seconds = scheduled_time(t, user, project, processors_of(job, records), requested_time)
  if not seconds or seconds >= requested_time and not own_time_min(job)
    or must_be_plain(job, records, requested_time)
    or excluded(t, job, records, requested_time)
    -- The look looks for it again, and it may be over by then (docs/left_alone.md: V3).
    or not t.mechanism.at_look
      and touches_reservation(t, job, records, requested_time, now) then
    return
  end
  if t.mode == "advise" then
    advise(t, user, requested_time, seconds, now)
  elseif t.mode == "observe" or not in_share(t, job, user, records) then
    log(slurm.log_info, "observe", "observe: would plan a job of %s with %d min instead of %d",
      tostring(user), seconds / 60, requested_time / 60)
  else
    apply(t, job, requested_time, seconds)
  end
end

-- Modification --------------------------------------------------------------------------------

local function changed(value)
  if type(value) == "number" then
    return value ~= NO_VAL
  end
  return value ~= nil
end

-- The job as it will be: what the request changes, and the record for the rest.
local function merged(job_desc, job_rec)
  return setmetatable({}, {
    __index = function(_, field)
      if field == "het_job_offset" then
        return number(job_rec.het_job_id) and job_rec[field] -- else 0, as of a first part
      end
      local value = job_desc[field]
      if changed(value) and not (field == "begin_time" and value == 0) then
        return value
      end
      return job_rec[field]
    end,
  })
end

local function judged_anew(job_desc)
  return changed(job_desc.time_limit) or text(job_desc.partition) or text(job_desc.qos)
    or text(job_desc.account) or text(job_desc.reservation) or text(job_desc.comment)
    or number(job_desc.deadline) or number(job_desc.begin_time)
end

-- What we noted of a job (TABLE.md, "The note"), nil without a note.
local function note_of(job)
  for word in string.gmatch(text(job.admin_comment) or "", "%S+") do
    local requested, field, minutes, more = match(word,
      "^foretime:treq=(%d+),(t%l+)=(%d+)([,%l=%d]*)$")
    if requested then
      return {
        requested = tonumber(requested),
        field = field,
        minutes = tonumber(minutes),
        own = tonumber(match(more, ",own=(%d+)")),
        learned = find(more, ",learned=1", 1, true),
      }
    end
  end
  return nil
end

-- Whether a job's time_min is the one that Foretime set. The daemon may have refined it since under
-- the scheme learned. Any other is the user's.
local function is_ours(noted, time_min)
  return time_min and noted.field == "tmin"
    and (time_min == noted.minutes or noted.learned and time_min ~= noted.own)
end

-- Whether a user is refused a limit that only the hook's t_sched stands in the way of.
local function is_refused_for_us(noted, limit, before, uid)
  return noted.field == "tsched" and uid ~= 0 and before == noted.minutes
    and limit and limit > noted.minutes and limit <= noted.requested
end

-- For each task of an array Slurm calls with the same request, in which then still stands what was
-- put back for the task before. That is taken out again: the user didn't ask for it.
local function take_out_of_last_task(job_desc, job_rec, uid, now)
  local array, task = number(job_rec.array_job_id), job_rec.job_id
  local words = array and table.concat(
    { array, uid, now, job_desc.time_limit, job_desc.comment or "" }, " ")
  if not array or not array_request or array_request.words ~= words
    or array_request.tasks[task] then
    array_request = array and { words = words, tasks = {} }
  end
  if array then
    array_request.tasks[task] = true
    if array_request.put_back == job_desc.time_min then
      job_desc.time_min = NO_VAL
    end
  end
end

local function put_back(job_desc, minutes)
  job_desc.time_min = minutes -- 0 clears it
  if array_request then
    array_request.put_back = minutes
  end
end

-- Whatever the table says: only a time_min of ours is ever changed, and where it must not count
-- the user's own is put back, or none. Slurm then answers as it would without Foretime.
local function modify(job_desc, job_rec, part_list, uid)
  local now = os.time()
  take_out_of_last_task(job_desc, job_rec, uid, now)
  local noted = note_of(job_rec)
  if not noted or changed(job_desc.time_min) then
    return -- who asks for a time_min of their own gets Slurm's answer to it
  end
  if is_refused_for_us(noted, number(job_desc.time_limit), number(job_rec.time_limit), uid) then
    slurm.log_user("foretime: this job is planned with %d minutes and will get its %d minutes "
      .. "when it starts; to lower that, ask for less than %d or submit it anew",
      noted.minutes, noted.requested, noted.minutes)
    return
  end
  local planned, own = number(job_rec.time_min), noted.own or 0
  if not is_ours(noted, planned) then
    return
  end
  -- Slurm refuses a limit below time_min: it is to judge by the user's own.
  if changed(job_desc.time_limit) and job_desc.time_limit < max(planned, own) then
    put_back(job_desc, own)
    return
  end
  if not judged_anew(job_desc) then
    return
  end
  local t = usable_table(now)
  local job = merged(job_desc, job_rec)
  local requested_time, records = time_limit_s(job), partitions_of(job, part_list)
  -- A planned job stays planned without a table, so it is judged without one, too.
  if not requested_time or not records or must_be_plain(job, records, requested_time)
    or t and (excluded(t, job, records, requested_time)
      or touches_reservation(t, job, records, requested_time, now)) then
    put_back(job_desc, own)
  end
end

-- What a site calls ---------------------------------------------------------------------------

-- Settings by name; those not named get their default. Forgets the table read so far.
--   table                the table file's path
--   disable_file         while this file exists, no job is planned (none by default)
--   log_interval_s       one line of each kind in this time (60)
--   largest_table_bytes  a larger table isn't read (64 MiB)
function foretime.configure(settings)
  settings = type(settings) == "table" and settings or {}
  config = {
    table = settings.table,
    disable_file = settings.disable_file,
    log_interval_s = tonumber(settings.log_interval_s) or 60,
    largest_table_bytes = tonumber(settings.largest_table_bytes) or 64 * 1024 * 1024,
  }
  cached, log_lines = nil, {}
  advice = { told = {}, count = 0, since = os.time() }
end

local function guarded(work, ...)
  local done, problem = pcall(work, ...)
  if not done then
    pcall(log, slurm and slurm.log_error, "error", "a job is left alone: %s", tostring(problem))
  end
end

-- Call from slurm_job_submit, after the site's own rules.
function foretime.submit(job_desc, part_list, submit_uid)
  guarded(submit, job_desc, part_list, submit_uid)
end

-- Call from slurm_job_modify, after the site's own rules.
function foretime.modify(job_desc, job_rec, part_list, modify_uid)
  guarded(modify, job_desc, job_rec, part_list, modify_uid)
end

-- Call once at the end of a site's own job_submit.lua, with the settings of configure: the hook
-- then follows the site's functions, and sees what they accepted.
function foretime.attach(settings)
  foretime.configure(settings)
  local function after(site, ours)
    return function(...)
      local code = slurm.SUCCESS
      if site then
        code = site(...)
      end
      -- What is no number Slurm takes for success.
      if type(code) ~= "number" or code == slurm.SUCCESS then
        ours(...)
      end
      return code
    end
  end
  slurm_job_submit = after(slurm_job_submit, foretime.submit)
  slurm_job_modify = after(slurm_job_modify, foretime.modify)
end

foretime.configure()

return foretime
