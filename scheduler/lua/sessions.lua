-- How runs end, and how they follow one another in a session. Stands behind records.lua.

local RUN_LIFE, SESSION_LIFE = tonumber(ARGV[2]), tonumber(ARGV[3])
local SESSION_MEMORY = 50 -- so many runs of a session are its memory, and live as long as the session

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
