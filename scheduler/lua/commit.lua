-- commit: what happened and what comes next, by the owner of a run, once for each nonce.
-- Arguments: in one JSON array, for each argument costs as much as a field of the record: token, base (the rev it builds on),
--   nonce, to, inbox entries consumed, lease ms ('': as it is), step ('': as it is), model call (keep; settle: the hold is
--   dropped; open: a new one is taken), settled (list of ledger, field, amount), hold (likewise), lives (list of ledger, ms
--   until it expires), call marks (list of call, mark; '': delete), asks (list of ask, kind, delay ms or '', words; kind '':
--   close); then state ('': as it is), opaque text of the model call, what few commits say (list of name, value; see below),
--   events (list)
-- What few commits say: at or delay (due), wait, reason, limits, context and cursor (what it makes of its session's memory);
--   of a release that counts as a crash poison_event and poison_reason (if that is one crash too many), crashes_at_a_step,
--   crashes_in_all
-- Replies: done <own> <status> <rev> <seq> <cancel> <over> <promoted run> <now> {inbox} | already ... (as done)
--   | missing | broken <field> | stale | behind <rev> <seq>
-- Moves: running -> waiting, running -> queued, running -> completed, running -> failed, running -> cancelled,
--   running -> budget_exceeded
-- Derived keys: ledgers, session and its queue, idem, indexes

local token, base, nonce, to, consumed, lease, step, model_call,
  settled, hold, lives, marks, asks = unpack(cjson.decode(take()))
local state, open, few, events = take(), take(), take_list(), take_list()
local said = {}
for i = 1, #few, 2 do said[few[i]] = few[i + 1] end
local due, reason = tonumber(said.at) or (said.delay and now + tonumber(said.delay)), said.reason or ''

-- What only the end of an activation needs, and a record that is not as it should be: nobody else pays for defining it.
local function ending()
-- include sessions
  return find, settle, move, close
end
local find, settle, move, close

-- What a commit reads of a running run that goes on; nil where the record is not that of one.
local function head()
  local values = read(own, 'id', 'status', 'token', 'rev', 'last', 'seq', 'step', 'hold', 'over', 'cancel', 'crashes',
    'crashes_total', 'session')
  for i = 1, 13 do
    if not values[i] then return nil end
  end
  local rev, seq, step = tonumber(values[4]), tonumber(values[6]), tonumber(values[7])
  local crashes, total = tonumber(values[11]), tonumber(values[12])
  if values[1] ~= own or values[2] ~= 'running' or not (rev and seq and step and crashes and total) then return nil end
  return { id = own, status = 'running', token = values[3], rev = rev, last = values[5], seq = seq, step = step,
    hold = values[8], over = values[9], cancel = values[10], crashes = crashes, crashes_total = total, session = values[13],
    changes = {} }
end

local record, refusal = to == 'running' and head() or nil
if not record then
  find, settle, move, close = ending()
  record, refusal = find(own)
  if not record then return refusal end
end

local promoted = ''
local function reply(code, inbox)
  local mine = record.token == token
  return { code, mine and 1 or 0, record.status, record.rev, record.seq, record.cancel, record.over, promoted, now,
    mine and inbox or {} }
end

if record.last == nonce then return reply('already', call('LRANGE', INBOX, 0, -1)) end
if record.token ~= token or record.rev > base then return { 'stale' } end
if record.rev < base then
  -- Redis lost what this owner had committed: cursors of the lost events must not be trusted.
  call('HSET', RUN, 'epoch', nonce)
  return { 'behind', record.rev, record.seq }
end

local news = call('LRANGE', INBOX, consumed, -1)

-- A run does not go to sleep over what has come in meanwhile.
if (to == 'waiting' or to == 'budget_exceeded') and (#news > 0 or record.cancel ~= '') then to = 'running' end

local crashes, crashes_total = record.crashes, record.crashes_total
if step ~= '' and step > record.step then crashes = 0 end
if said.poison_event then
  crashes, crashes_total = crashes + 1, crashes_total + 1
  local too_many = crashes >= tonumber(said.crashes_at_a_step) or crashes_total >= tonumber(said.crashes_in_all)
  if to == 'queued' and too_many then
    to, reason = 'failed', said.poison_reason
    events[#events + 1] = said.poison_event
  end
end

for _, body in ipairs(events) do add(record, body) end

if consumed > 0 then call('LTRIM', INBOX, consumed, -1) end
set(record, 'rev', base + 1)
set(record, 'last', nonce)
if step ~= '' then set(record, 'step', step) end
if state ~= '' then set(record, 'state', state) end
if said.limits then set(record, 'limits', said.limits) end
if record.session ~= '' and said.context then
  -- The session's own at the end of the run (hand_down).
  set(record, 'context', said.context)
  set(record, 'cursor', said.cursor)
end
if crashes ~= record.crashes then set(record, 'crashes', crashes) end
if crashes_total ~= record.crashes_total then set(record, 'crashes_total', crashes_total) end

local marked, unmarked = {}, {}
for i = 1, #marks, 2 do
  local mark = marks[i + 1]
  if mark == '' then
    unmarked[#unmarked + 1] = marks[i]
  else
    marked[#marked + 1] = marks[i]
    marked[#marked + 1] = mark == 'started' and 'started:' .. token or mark
  end
end
if #marked > 0 then call('HSET', CALLS, unpack(marked)) end
if #unmarked > 0 then call('HDEL', CALLS, unpack(unmarked)) end

for i = 1, #asks, 4 do
  local kind, delay, words = asks[i + 1], asks[i + 2], asks[i + 3]
  local value = kind == '' and 'closed' or table.concat({ kind, delay == '' and '' or now + delay, words }, ' ')
  call('HSET', ASKS, asks[i], value)
end

local opened = ''
if model_call ~= 'keep' and record.hold ~= '' then
  for ledger, field, amount in held(record) do call('HINCRBY', ledger, 'held:' .. field, '-' .. amount) end
  set(record, 'hold', '')
end
if model_call ~= 'keep' and record.over ~= '' then set(record, 'over', '') end
for i = 1, #settled, 3 do call('HINCRBY', settled[i], 'used:' .. settled[i + 1], settled[i + 2]) end

-- The first limit that leaves no room for what is to be held: ledger, field, what is used and held, the limit. Nil: none.
local function breached_limit()
  local i = 1
  while hold[i] do
    local ledger, first, limits = hold[i], i, {}
    while hold[i] == ledger do
      limits[#limits + 1] = 'limit:' .. hold[i + 1]
      i = i + 3
    end
    for n, limit in ipairs(call('HMGET', ledger, unpack(limits))) do
      if limit then
        local field, amount = hold[first + 3 * n - 2], hold[first + 3 * n - 1]
        local known = call('HMGET', ledger, 'used:' .. field, 'held:' .. field)
        local used, on_hold = known[1] or 0, known[2] or 0
        if used + on_hold + amount > tonumber(limit) then return { ledger, field, used, on_hold, limit } end
      end
    end
  end
end

if model_call == 'open' and to == 'running' then
  local over = breached_limit()
  if not over then
    for i = 1, #hold, 3 do call('HINCRBY', hold[i], 'held:' .. hold[i + 1], hold[i + 2]) end
    if #hold > 0 then set(record, 'hold', table.concat(hold, '\n')) end
    opened = token .. ' ' .. open
  else
    set(record, 'over', table.concat(over, '\n'))
  end
end
if model_call ~= 'keep' then set(record, 'open', opened) end
for i = 1, #lives, 2 do call('PEXPIRE', lives[i], lives[i + 1]) end

if to == 'running' then
  if lease ~= '' then call('ZADD', LEASES, now + lease, own) end
  if #asks > 0 then schedule(record, first_deadline(record)) end
  save(record)
  return reply('done', news)
end

if to ~= 'queued' and to ~= 'waiting' then
  promoted = close(record, to, reason)
else
  settle(record)
  set(record, 'wait', said.wait or '')
  set(record, 'reason', reason)
  if to == 'waiting' then
    -- The earliest of all that the run waits for.
    local deadline = first_deadline(record)
    move(record, 'waiting', deadline and due and math.min(deadline, due) or deadline or due)
  else
    move(record, 'queued', due or now + RING_GRACE)
    if due then set(record, 'not_before', due) end
  end
end
save(record)
return reply('done', news)
