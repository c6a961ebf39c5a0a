-- Prepended to every script. Names the keys, reads the clock, and holds what even the smallest change of a record needs: a
-- commit in the middle of a run, by far the most frequent call, pays for nothing else. The rest is in records.lua.
--
-- A script reads and checks everything first, then writes, for Lua does not roll back. The first write is one that a full
-- memory refuses; those after it cannot fail. A refusal changes nothing.
--
-- Keys: the first is the run's record. The names of the others that a script uses are made of it in front of this text
-- (keys.py, lua_names): the run's own, the shared ones, and prefixes, which a value of the record completes. A script for
-- many runs gets the run '' and so prefixes of the runs' own keys.
-- Arguments: the run, milliseconds that an ended run and an idle session are kept, then the script's own.
-- Replies are arrays {code, ...}; a missing value is ''.

local call = redis.call
local RING_GRACE = 2000 -- milliseconds until a sweep rings, where whoever made the run due rings at once

-- Arguments are taken in order.
local taken = 3
local function take()
  taken = taken + 1
  return ARGV[taken]
end

-- A list on the wire is its length, then its values.
local function take_list()
  local list = {}
  for i = 1, tonumber(take()) do list[i] = take() end
  return list
end

-- Milliseconds: the server's time, or the test's.
local now = call('GET', CLOCK)
if now then
  now = tonumber(now)
else
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The same key of another run.
local function of(id, key)
  if id == own then return key end
  return key:sub(1, -#own - 1) .. id
end

-- Fields of a record; none where its key holds something else.
local function read(id, ...)
  local values = redis.pcall('HMGET', of(id, RUN), ...)
  return values.err and {} or values
end

local function set(record, field, value)
  record[field] = value
  local changes = record.changes
  changes[#changes + 1] = field
  changes[#changes + 1] = value
end

local function save(record)
  if #record.changes > 0 then call('HSET', of(record.id, RUN), unpack(record.changes)) end
  record.changes = {}
end

-- Events are numbered here and nowhere else: 1, 2, 3, ...
local function add(record, body)
  set(record, 'seq', record.seq + 1)
  call('XADD', of(record.id, EVENTS), record.seq .. '-0', 'b', body, 't', now)
end

local function schedule(record, due)
  if due then call('ZADD', DUE, due, record.id) else call('ZREM', DUE, record.id) end
end

-- When the first deadline passes of what a run asks; nil where nothing that is open has one.
local function first_deadline(record)
  local first
  for _, ask in ipairs(call('HVALS', of(record.id, ASKS))) do
    local deadline = tonumber(ask:match('^%S+ (%d+)'))
    if deadline and (not first or deadline < first) then first = deadline end
  end
  return first
end

-- The triples of `hold`: ledger key, field, integer.
local function held(record)
  return record.hold:gmatch('([^\n]+)\n([^\n]+)\n(%d+)')
end
