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

-- The kind of an ask, and whether it is past its deadline, which no sweep may have seen yet: its default holds all the same.
local function kind_of(value)
  local its_kind, deadline = value:match('^(%S+) (%d*)')
  return its_kind, (tonumber(deadline) or now + 1) <= now
end

if ask_kind ~= '' then
  if ask ~= '' then
    local value = call('HGET', ASKS, ask)
    if not value then return { 'not_asked' } end
    local its_kind, is_over = kind_of(value)
    if value == 'closed' or is_over then return { 'answered' } end
    if its_kind ~= ask_kind then return { 'not_asked' } end
  else
    local asks, missed = call('HGETALL', ASKS), false
    for i = 1, #asks, 2 do
      local its_kind, is_over = kind_of(asks[i + 1])
      if its_kind == ask_kind and is_over then
        missed = true
      elseif its_kind == ask_kind then
        if ask ~= '' then return { 'which' } end
        ask = asks[i]
      end
    end
    if ask == '' then return { missed and 'answered' or 'not_asked' } end
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
