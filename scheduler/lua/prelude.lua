-- Prepended to every script. Names the keys, reads the clock, and holds the few functions that change a record.
--
-- A script reads and checks everything first, then writes, for Lua does not roll back. The first write is one that a full
-- memory refuses; those after it cannot fail. A refusal changes nothing.
--
-- Keys, the same in every script (keys.py, Keys.frame): the run's own seven; the shared ones; and prefixes, which a value of
-- the record completes. A script for many runs gets the run '' and so prefixes in place of the first seven.
-- Arguments: the run, milliseconds that an ended run and an idle session are kept, then the script's own.
-- Replies are arrays {code, ...}; a missing value is ''.

local RUN, EVENTS, INBOX, CALLS, ASKS, SIDS, LIVE,
  CLOCK, LEASES, DUE, MIRROR, EXPIRING, BY_TIME, SESSIONS, HINTS,
  BY_STATUS, BY_AGENT, BY_TENANT, BY_SESSION, SESSION, NEXT, BEGUN, SESSIONS_OF, IDEM = unpack(KEYS)

local RING_GRACE = 2000 -- milliseconds until a sweep rings, where whoever made the run due rings at once
local SESSION_MEMORY = 50 -- so many runs of a session are its memory, and live as long as the session

local UNENDED = { queued = true, running = true, waiting = true }
local ENDED = { completed = true, failed = true, cancelled = true, budget_exceeded = true }
local RESUMABLE = { failed = true, budget_exceeded = true }

-- What a script reads of a record, and which of it are numbers. A commit that changes no status, by far the most frequent
-- call, reads only the head.
local HEAD = { 'id', 'status', 'token', 'rev', 'last', 'seq', 'step', 'hold', 'over', 'cancel', 'crashes', 'crashes_total',
  'session' }
local FIELDS = { 'schema', 'agent', 'tenant', 'queue', 'idem', 'created_at', 'moves', 'status_at', 'fence', 'open', 'behind',
  'overtakes', 'rings', 'rung', 'not_before', 'deferrals', 'deferral', unpack(HEAD) }
local NUMBERS = { schema = true, created_at = true, moves = true, status_at = true, fence = true, rev = true, seq = true,
  step = true, crashes = true, crashes_total = true, rings = true, deferrals = true }

local call = redis.call
local own = ARGV[1]
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

-- A moment is given as itself or as a delay; nil where neither is given.
local function take_moment()
  local at, delay = take(), take()
  if at ~= '' then return tonumber(at) end
  if delay ~= '' then return now + tonumber(delay) end
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
  fields = fields or FIELDS
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

-- The indexes of a run beside its status.
local function index(id, created_at, agent, tenant, session)
  call('ZADD', BY_TIME, created_at, id)
  call('ZADD', BY_AGENT .. agent, created_at, id)
  if tenant ~= '' then call('ZADD', BY_TENANT .. tenant, created_at, id) end
  if session ~= '' then call('ZADD', BY_SESSION .. session, created_at, id) end
end

local function unindex(id, status, agent, tenant, session)
  call('ZREM', BY_STATUS .. status, id)
  call('ZREM', BY_TIME, id)
  call('ZREM', BY_AGENT .. agent, id)
  if tenant ~= '' then call('ZREM', BY_TENANT .. tenant, id) end
  if session ~= '' then call('ZREM', BY_SESSION .. session, id) end
end

-- The member of EXPIRING holds what unindex() needs, for by then the record is gone.
local function epitaph(record)
  return table.concat({ record.id, record.status, record.agent, record.tenant, record.session }, '\n')
end

local function owns_idem(record)
  return record.idem ~= '' and call('GET', IDEM .. record.idem) == record.id
end

-- Every key of an ended run has the same expiry.
local function expire(record, at)
  for _, key in ipairs({ RUN, EVENTS, INBOX, CALLS, ASKS, SIDS, LIVE }) do call('PEXPIREAT', of(record.id, key), at) end
  if owns_idem(record) then call('PEXPIREAT', IDEM .. record.idem, at) end
  call('ZADD', EXPIRING, at, epitaph(record))
  set(record, 'expires_at', at)
end

-- The live run that a session works on; nil where it is free.
local function active_run(session)
  local id = session ~= '' and call('HGET', SESSION .. session, 'active')
  if not id or id == '' then return nil end
  local record = find(id)
  if record and not ENDED[record.status] then return record end
end

-- A session is found by when something last happened in it.
local function touch(session)
  call('ZADD', SESSIONS, now, session)
  local tenant = string.match(session, '^[^:]*')
  if tenant ~= '' then call('ZADD', SESSIONS_OF .. tenant, now, session) end
end

-- A run begins: from now on the session remembers it, unless it is rolled back. Order is all: a run knows those before it.
local function remember(record)
  local key = BEGUN .. record.session
  call('LREM', key, 0, record.id)
  call('RPUSH', key, record.id)
  call('LTRIM', key, -SESSION_MEMORY, -1)
end

-- What a run made of its session's memory becomes the session's at its end, unless it was rolled back.
local function hand_down(record)
  local made = read(record.id, 'context', 'cursor', 'forgotten')
  if made[1] and made[3] ~= '1' then
    call('HSET', SESSION .. record.session, 'state', made[1], 'cursor', made[2] or '')
  end
  call('HDEL', of(record.id, RUN), 'context', 'cursor')
end

-- The next run of a session becomes its active one; '' where nobody waits, and the session's days are counted from now.
local function promote(session)
  local id = call('LPOP', NEXT .. session)
  while id do
    local record = find(id)
    if record and record.status == 'queued' and record.behind == '1' then
      call('HSET', SESSION .. session, 'active', id)
      schedule(record, math.max(now, tonumber(record.not_before) or now))
      set(record, 'behind', '')
      save(record)
      return id
    end
    id = call('LPOP', NEXT .. session)
  end
  call('HSET', SESSION .. session, 'active', '')
  for _, key in ipairs({ SESSION, BEGUN }) do call('PEXPIREAT', key .. session, now + SESSION_LIFE) end
  return ''
end

-- A session's memory is built from the runs that began last, from its cursor on: they live as long as the session.
local function keep_memory(session)
  local cursor = call('HGET', SESSION .. session, 'cursor')
  local ids = call('LRANGE', BEGUN .. session, 0, -1)
  local first = 1
  for i, id in ipairs(ids) do
    if id == cursor then first = i end
  end
  for i = first, #ids do
    local record = find(ids[i])
    if record and ENDED[record.status] then
      expire(record, now + math.max(RUN_LIFE, SESSION_LIFE))
      save(record)
    end
  end
end

-- Every end. The event that tells of it has been added before. Returns the run that is promoted in the session, or ''.
-- A run that can be resumed keeps what it needs to go on: the marks of its calls, its questions and their answers.
local function close(record, status, reason)
  local promoted = ''
  if not RESUMABLE[status] then call('DEL', of(record.id, INBOX), of(record.id, ASKS), of(record.id, CALLS)) end
  settle(record)
  move(record, status)
  set(record, 'behind', '')
  set(record, 'wait', '')
  set(record, 'not_before', '')
  set(record, 'reason', reason)
  expire(record, now + RUN_LIFE)
  save(record)
  local session = record.session
  if session ~= '' then
    touch(session)
    if call('HGET', SESSION .. session, 'active') == record.id then
      hand_down(record)
      promoted = promote(session)
    else
      call('LREM', NEXT .. session, 0, record.id)
    end
    keep_memory(session)
  end
  return promoted
end

-- Asks a running run to end, ends any other. The first reason stays. Returns `asked` or `cancelled` and the promoted run.
-- What was interrupted before it began is remembered for its task; what is rolled back leaves the session's memory.
local function stop(record, reason, body)
  local running, first = record.status == 'running', record.cancel == ''
  if not running then add(record, body) end
  if first then set(record, 'cancel', reason) end
  if reason == 'interrupt' and record.fence == 0 then remember(record) end
  if reason == 'rollback' then
    set(record, 'forgotten', 1)
    call('LREM', BEGUN .. record.session, 0, record.id)
  end
  if not running then return 'cancelled', close(record, 'cancelled', record.cancel) end
  if first then call('PUBLISH', HINTS, record.id) end
  save(record)
  return 'asked', ''
end

-- Gives a run its place in its session; returns when it is due, nil behind another. `active` is the run it finds there.
local OVERTAKES = { interrupt = true, rollback = true }
local function admit(record, active, on_busy, start)
  local session = record.session
  if session ~= '' then touch(session) end
  set(record, 'overtakes', active and OVERTAKES[on_busy] and '1' or '')
  if active then
    set(record, 'behind', '1')
    call(OVERTAKES[on_busy] and 'LPUSH' or 'RPUSH', NEXT .. session, record.id)
    return nil
  end
  if session ~= '' then
    call('HSET', SESSION .. session, 'active', record.id)
    for _, key in ipairs({ SESSION, BEGUN }) do call('PERSIST', key .. session) end
  end
  return start or now + RING_GRACE
end

-- Whom a run overtakes: the active run of its session and, at the head of the line, one that was to overtake it as well.
-- Nil where there is nobody to overtake; then the key that is damaged, if one is.
local function overtaken(active, on_busy)
  if not active or not OVERTAKES[on_busy] then return nil end
  local found = { active }
  local first = call('LINDEX', NEXT .. active.session, 0)
  local record = first and find(first)
  if record and record.behind == '1' and record.overtakes == '1' then table.insert(found, 1, record) end
  for _, one in ipairs(found) do
    local damaged = damage(one)
    if damaged then return nil, damaged end
  end
  return found
end
