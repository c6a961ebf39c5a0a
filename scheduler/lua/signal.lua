-- signal: something for a run from outside: an answer to what it asked, or a larger budget.
-- Arguments: signal id, kind (reply, approve, reject, top_up), kind of ask that it answers ('': none), ask ('': the only open
--   one), body, most inbox entries, most signals of a run
-- Replies: woken | kept | already <woken, kept> | missing | broken <field> | over <status> | answered | not_asked | which | full
-- Moves: waiting -> queued
-- Inbox entry: <kind> <ask> <now> <signal id> <body>

-- include records

local sid, kind, ask_kind, ask, body = take(), take(), take(), take(), take()
local most_unread, most_signals = tonumber(take()), tonumber(take())

local record, refusal = find(own)
if not record then return refusal end
local known = call('HGET', SIDS, sid)
if known then return { 'already', known } end
if ENDED[record.status] then return { 'over', record.status } end

if ask_kind ~= '' then
  if ask ~= '' then
    local value = call('HGET', ASKS, ask)
    if not value then return { 'not_asked' } end
    if value == 'closed' then return { 'answered' } end
    if value:match('^(%S+) ') ~= ask_kind then return { 'not_asked' } end
  else
    local asks = call('HGETALL', ASKS)
    for i = 1, #asks, 2 do
      if asks[i + 1]:match('^(%S+) ') == ask_kind then
        if ask ~= '' then return { 'which' } end
        ask = asks[i]
      end
    end
    if ask == '' then return { 'not_asked' } end
  end
end
if call('LLEN', INBOX) >= most_unread or call('HLEN', SIDS) >= most_signals then return { 'full' } end

local outcome = record.status == 'waiting' and 'woken' or 'kept'
call('RPUSH', INBOX, table.concat({ kind, ask, now, sid, body }, ' '))
call('HSET', SIDS, sid, outcome)
if ask_kind ~= '' then call('HSET', ASKS, ask, 'closed') end
if outcome == 'woken' then
  set(record, 'wait', '')
  move(record, 'queued', now)
  save(record)
end
return { outcome }
