-- sweep: what is over: leases, waits, rings, entries of runs that are gone. Bounded; safe in many processes at once.
-- Keys: the last one is swept_at
-- Arguments: most runs of each kind, most mirror entries and expired runs (0: not looked at this time), lease ms
-- Replies: fresh | amnesty <leases raised> | swept {run, token of expired leases} {run, queue to ring}
--   {runs to mirror} {runs whose wait is over}
-- Moves: waiting -> queued
-- Derived keys: record, inbox and asks of each run; indexes
-- Inbox entry of an ask past its deadline: expired <ask> <now> <sid: none> <body: none>

-- include sessions

local SWEPT_AT = KEYS[#KEYS]
local most, most_tended, lease = tonumber(take()), tonumber(take()), tonumber(take())

-- A lease may have as little as half of itself left when a pause begins: any longer gap may have cost a live owner its lease.
local FRESH, GAP, MIRROR_GRACE = math.min(400, lease / 8), math.min(3000, lease / 2), 2000
local FIRST_RING, LONGEST_RING = 2000, 60000

local swept_at = tonumber(call('GET', SWEPT_AT) or 0)
local gap = now - swept_at
if gap >= 0 and gap < FRESH then return { 'fresh' } end
call('SET', SWEPT_AT, now)

-- After a pause of Redis, or a jump of its clock, everyone first gets the chance to renew.
if gap < 0 or gap > GAP then
  local leases = call('ZRANGE', LEASES, 0, -1)
  for _, id in ipairs(leases) do call('ZADD', LEASES, now + lease, id) end
  return { 'amnesty', #leases }
end

local function drop(id)
  for _, key in ipairs({ LEASES, DUE, MIRROR }) do call('ZREM', key, id) end
end

local expired = {}
local leases = call('ZRANGE', LEASES, 0, most - 1, 'WITHSCORES')
for i = 1, #leases, 2 do
  if tonumber(leases[i + 1]) <= now then
    local known = read(leases[i], 'status', 'token')
    if not known[1] then
      drop(leases[i])
    elseif known[1] ~= 'running' then
      call('ZREM', LEASES, leases[i])
    else
      expired[#expired + 1] = leases[i]
      expired[#expired + 1] = known[2] or ''
    end
  end
end
if #leases > 0 then
  -- The clock went back: no lease is longer than a lease.
  for _, id in ipairs(call('ZRANGEBYSCORE', LEASES, now + 2 * lease, '+inf', 'LIMIT', 0, most)) do
    call('ZADD', LEASES, now + lease, id)
  end
end

-- A run that stays unserved is rung after 2, 4, 8 ... 60 seconds, so that it never blocks the head of the line.
local rings, fired = {}, {}
local function ring_later(record)
  call('ZADD', DUE, now + math.min(FIRST_RING * 2 ^ math.min(record.rings, 5), LONGEST_RING), record.id)
  set(record, 'rings', record.rings + 1)
  rings[#rings + 1] = record.id
  rings[#rings + 1] = record.queue
end

local function expire_asks(record)
  local asks = call('HGETALL', of(record.id, ASKS))
  for i = 1, #asks, 2 do
    local deadline = tonumber(asks[i + 1]:match('^%S+ (%d+)'))
    if deadline and deadline <= now then
      call('HSET', of(record.id, ASKS), asks[i], 'closed')
      call('RPUSH', of(record.id, INBOX), table.concat({ 'expired', asks[i], now, '', '' }, ' '))
    end
  end
end

for _, id in ipairs(call('ZRANGEBYSCORE', DUE, '-inf', now, 'LIMIT', 0, most)) do
  local record, refusal = find(id)
  if not record and refusal[1] == 'missing' then
    drop(id)
  elseif not record or (record.status ~= 'queued' and not ENDED[record.status] and damage(record)) then
    call('ZADD', DUE, now + LONGEST_RING, id) -- broken: kept for inspection, out of the way
  elseif record.status == 'queued' then
    ring_later(record)
    save(record)
  elseif record.status == 'waiting' then
    expire_asks(record)
    set(record, 'wait', '')
    move(record, 'queued', now)
    ring_later(record)
    save(record)
    fired[#fired + 1] = id
  elseif record.status == 'running' then
    expire_asks(record) -- its owner hears of it when it renews its lease
    schedule(record, first_deadline(record))
  else
    call('ZREM', DUE, id)
  end
end

local unmirrored = {}
if most_tended > 0 then
  for _, id in ipairs(call('ZRANGEBYSCORE', MIRROR, '-inf', now - MIRROR_GRACE, 'LIMIT', 0, most_tended)) do
    local record, refusal = find(id)
    if record then
      call('ZADD', MIRROR, now, id) -- mended by this sweep alone
      unmirrored[#unmirrored + 1] = id
    elseif refusal[1] == 'missing' then
      drop(id)
    else
      call('ZADD', MIRROR, now + LONGEST_RING, id)
    end
  end
  for _, member in ipairs(call('ZRANGEBYSCORE', EXPIRING, '-inf', now, 'LIMIT', 0, most_tended)) do
    unindex(member:match('^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)$'))
    call('ZREM', EXPIRING, member)
  end
  -- A session that nobody worked on for its days is gone by itself; one that still waits is found for as long again.
  for _, session in ipairs(call('ZRANGEBYSCORE', SESSIONS, '-inf', now - SESSION_LIFE, 'LIMIT', 0, most_tended)) do
    if call('EXISTS', SESSION .. session) == 1 then
      touch(session)
    else
      call('ZREM', SESSIONS, session)
      call('ZREM', SESSIONS_OF .. string.match(session, '^[^:]*'), session)
    end
  end
end
return { 'swept', expired, rings, unmirrored, fired }
