-- claim: a worker becomes the owner of a queued run.
-- Arguments: activation, worker, newest schema it reads, room for runs with one crash (0, 1), room for runs with more (0, 1),
--   lease ms, event, agents it has (list; none: any)
-- Replies: claimed ... | yours ... (a claim sent again) | missing | broken <field or key> | held <ms> | behind | early <ms>
--   | newer <schema> | no_agent <agent> | suspect | waiting | completed | failed | cancelled | budget_exceeded
-- Moves: queued -> running
-- Derived keys: session

-- include sessions

local activation, worker, newest_schema = take(), take(), tonumber(take())
local room_for_one_crash, room_for_more, lease = take(), take(), tonumber(take())
local body, agents = take(), take_list()

local SUSPECT_DELAY = 500
local FEW, LITTLE_BYTES = 64, 262144 -- a run with so few events brings them along; more are read apart, not in a script

local record, refusal = find(own)
if not record then return refusal end

local function events_to_bring()
  if record.seq > FEW then return '' end
  local events, size = call('XRANGE', EVENTS, '-', '+'), 0
  for _, event in ipairs(events) do size = size + #event[2][2] end
  return size <= LITTLE_BYTES and events or ''
end

local function granted(code, queued_since)
  local kept = call('HMGET', RUN, 'state', 'limits', 'metadata', 'epoch', 'worker', 'reason')
  local open_asks, asks = {}, call('HGETALL', ASKS)
  for i = 1, #asks, 2 do
    if asks[i + 1] ~= 'closed' then
      open_asks[#open_asks + 1] = asks[i]
      open_asks[#open_asks + 1] = asks[i + 1]
    end
  end
  local session, begun = '', {}
  if record.session ~= '' then
    session = call('HGET', SESSION .. record.session, 'state') or ''
    begun = call('LRANGE', BEGUN .. record.session, 0, -1)
  end
  return { code, now, queued_since, record.token, record.rev, record.seq, record.step, kept[1], record.open, kept[2], record.crashes,
    record.crashes_total, record.cancel, record.created_at, record.agent, record.session, record.tenant, record.queue,
    record.schema, kept[3], kept[4], session, begun, call('HGETALL', CALLS), open_asks, call('LRANGE', INBOX, 0, -1),
    events_to_bring() }
end

if record.status == 'running' then
  if record.token == record.fence .. ':' .. activation then
    call('ZADD', LEASES, now + lease, own)
    return granted('yours', now)
  end
  return { 'held', math.max(0, (tonumber(call('ZSCORE', LEASES, own) or now)) - now) }
end
if record.status ~= 'queued' then return { record.status } end
if record.behind == '1' then return { 'behind' } end

-- A refused claim has used up the ring that led to it: when the run is due, it is rung anew.
local function refuse(...)
  set(record, 'rung', '')
  save(record)
  return { ... }
end

local not_before = tonumber(record.not_before)
if not_before and not_before > now then return refuse('early', not_before - now) end
if record.schema > newest_schema then return refuse('newer', record.schema) end
if #agents > 0 then
  local known = false
  for _, agent in ipairs(agents) do known = known or agent == record.agent end
  if not known then return refuse('no_agent', record.agent) end
end
if (record.crashes == 1 and room_for_one_crash ~= '1') or (record.crashes > 1 and room_for_more ~= '1') then
  schedule(record, now + SUSPECT_DELAY)
  return refuse('suspect')
end
local damaged = damage(record)
if damaged then return { 'broken', damaged } end

-- Whether it has its place in the memory of its session, or is to have none.
local function has_its_place()
  return record.session == '' or call('LPOS', BEGUN .. record.session, own) or read(own, 'forgotten')[1] == '1'
end

local queued_since = record.status_at
add(record, body)
if not has_its_place() then remember(record) end
move(record, 'running', first_deadline(record))
call('ZADD', LEASES, now + lease, own)
set(record, 'fence', record.fence + 1)
set(record, 'token', record.fence .. ':' .. activation)
set(record, 'worker', worker)
for _, field in ipairs({ 'wait', 'reason', 'rung', 'not_before', 'deferral' }) do set(record, field, '') end
set(record, 'rings', 0)
set(record, 'deferrals', 0)
save(record)
return granted('claimed', queued_since)
