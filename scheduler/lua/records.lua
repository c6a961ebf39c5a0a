-- Whole records: read, moved from one status to another, settled. A script includes this where it begins; a commit only where
-- it ends an activation.

local UNENDED = { queued = true, running = true, waiting = true }
local ENDED = { completed = true, failed = true, cancelled = true, budget_exceeded = true }
local RESUMABLE = { failed = true, budget_exceeded = true }

-- What a script reads of a record, and which of it are numbers.
local FIELDS = { 'schema', 'agent', 'tenant', 'queue', 'idem', 'created_at', 'moves', 'status_at', 'fence', 'open', 'behind',
  'overtakes', 'rings', 'rung', 'not_before', 'deferrals', 'deferral', 'id', 'status', 'token', 'rev', 'last', 'seq', 'step',
  'hold', 'over', 'cancel', 'crashes', 'crashes_total', 'session' }
local NUMBERS = { schema = true, created_at = true, moves = true, status_at = true, fence = true, rev = true, seq = true,
  step = true, crashes = true, crashes_total = true, rings = true, deferrals = true }

-- The record of a run; nil and the refusal where there is none or it cannot be read.
local function find(id)
  local values = read(id, unpack(FIELDS))
  local record = { changes = {} }
  for i, field in ipairs(FIELDS) do
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
