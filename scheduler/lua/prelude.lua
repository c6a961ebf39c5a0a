-- Prepended to every script. Names the keys, reads the clock, and holds the few functions that change a record.
--
-- A script reads and checks everything first, then writes, for Lua does not roll back. The first write is one that a full
-- memory refuses; those after it cannot fail. A refusal changes nothing.
--
-- Keys: the first is the run's record. The names of the others that a script uses are made of it in front of this text
-- (keys.py, lua_names): the run's own, the shared ones, and prefixes, which a value of the record completes. A script for
-- many runs gets the run '' and so prefixes of the runs' own keys.
-- Arguments: the run, milliseconds that an ended run and an idle session are kept, then the script's own.
-- Replies are arrays {code, ...}; a missing value is ''.

local RING_GRACE = 2000 -- milliseconds until a sweep rings, where whoever made the run due rings at once
local SESSION_MEMORY = 50 -- so many runs of a session are its memory, and live as long as the session

local UNENDED = { queued = true, running = true, waiting = true }
local ENDED = { completed = true, failed = true, cancelled = true, budget_exceeded = true }
local RESUMABLE = { failed = true, budget_exceeded = true }

-- What a script reads of a record, and which of it are numbers. A commit that changes no status, by far the most frequent
-- call, reads only the head.
local HEAD = { 'id', 'status', 'token', 'rev', 'last', 'seq', 'step', 'hold', 'over', 'cancel', 'crashes', 'crashes_total',
  'session' }
local function all_fields()
  return { 'schema', 'agent', 'tenant', 'queue', 'idem', 'created_at', 'moves', 'status_at', 'fence', 'open', 'behind',
    'overtakes', 'rings', 'rung', 'not_before', 'deferrals', 'deferral', unpack(HEAD) }
end
local NUMBERS = { schema = true, created_at = true, moves = true, status_at = true, fence = true, rev = true, seq = true,
  step = true, crashes = true, crashes_total = true, rings = true, deferrals = true }

local call = redis.call
local RUN_LIFE, SESSION_LIFE = tonumber(ARGV[2]), tonumber(ARGV[3])

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

-- The record of a run; nil and the refusal where there is none or it cannot be read.
local function find(id, fields)
  fields = fields or all_fields()
  local values = read(id, unpack(fields))
  local record = { changes = {} }
  for i, field in ipairs(fields) do
    local value = values[i]
    if value and NUMBERS[field] then value = tonumber(value) end
    if not value then
      if call('EXISTS', of(id, RUN)) == 0 then return nil, { 'missing' } end
      return nil, { 'broken', field }
    end
    record[field] = value
  end
  if record.id ~= id then return nil, { 'broken', 'id' } end
  if not UNENDED[record.status] and not ENDED[record.status] then return nil, { 'broken', 'status' } end
  return record
end

-- The name of the first key beside the record that is not what it should be. Only such a run can fail in mid-script.
local function damage(record)
  local id = record.id
  for key, expected in pairs({ [EVENTS] = 'stream', [INBOX] = 'list', [CALLS] = 'hash', [ASKS] = 'hash', [SIDS] = 'hash' }) do
    local found = call('TYPE', of(id, key)).ok
    if found ~= expected and (found ~= 'none' or key == EVENTS) then return of(id, key) end
  end
  local newest = call('XREVRANGE', of(id, EVENTS), '+', '-', 'COUNT', 1)[1]
  if not newest or newest[1] ~= record.seq .. '-0' then return of(id, EVENTS) end
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

-- Every change of status.
local function move(record, to, due)
  if record.status == 'running' then
    call('ZREM', LEASES, record.id)
    set(record, 'token', '')
    set(record, 'worker', '')
  end
  call('ZREM', BY_STATUS .. record.status, record.id)
  call('ZADD', BY_STATUS .. to, now, record.id)
  call('ZADD', MIRROR, now, record.id)
  schedule(record, due)
  set(record, 'status', to)
  set(record, 'status_at', now)
  set(record, 'moves', record.moves + 1)
  if to == 'queued' then
    set(record, 'rings', 0)
    set(record, 'not_before', '')
  end
end

-- The triples of `hold`: ledger key, field, integer.
local function held(record)
  return record.hold:gmatch('([^\n]+)\n([^\n]+)\n(%d+)')
end

-- What was reserved and not accounted for counts as used. `open` stays: the next owner charges the run itself.
local function settle(record)
  for ledger, field, amount in held(record) do
    if call('EXISTS', ledger) == 1 then
      call('HINCRBY', ledger, 'held:' .. field, '-' .. amount)
      call('HINCRBY', ledger, 'used:' .. field, amount)
    end
  end
  set(record, 'hold', '')
end
