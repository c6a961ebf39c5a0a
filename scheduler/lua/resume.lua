-- resume: a failed or budget_exceeded run goes on from its checkpoint.
-- Arguments: signal id, limits ('': as they were), on_busy, event, event of a run that it overtakes
-- Replies: resumed | behind | already <resumed, behind> | gone | broken <field or key> | not_resumable <status> | busy <run>
-- Moves: failed -> queued, budget_exceeded -> queued; queued -> cancelled, waiting -> cancelled (whom it
--   overtakes in its session)
-- Derived keys: session and its lists, idem, indexes; those of runs that it overtakes

-- include sessions

local sid, limits, on_busy, body, overtaken_body = take(), take(), take(), take(), take()

local record, refusal = find(own)
if not record then return refusal[1] == 'missing' and { 'gone' } or refusal end
local known = call('HGET', SIDS, sid)
if known then return { 'already', known } end
if not RESUMABLE[record.status] then return { 'not_resumable', record.status } end
if call('EXISTS', EVENTS) == 0 then return { 'gone' } end
local damaged = damage(record)
if damaged then return { 'broken', damaged } end
local active = active_run(record.session)
if active and on_busy == 'reject' then return { 'busy', active.id } end
local others
others, damaged = overtaken(active, on_busy)
if damaged then return { 'broken', damaged } end

add(record, body)
call('ZREM', EXPIRING, epitaph(record))
for _, key in ipairs({ RUN, EVENTS, INBOX, CALLS, ASKS, SIDS, LIVE }) do call('PERSIST', key) end
if owns_idem(record) then call('PERSIST', IDEM .. record.idem) end
for _, field in ipairs({ 'cancel', 'reason', 'over', 'expires_at', 'rung' }) do set(record, field, '') end
set(record, 'crashes', 0)
if limits ~= '' then set(record, 'limits', limits) end
move(record, 'queued', admit(record, active, on_busy, nil))
save(record)

for _, other in ipairs(others or {}) do
  local _, promoted = stop(other, on_busy, overtaken_body)
  if promoted == own then set(record, 'behind', '') end
end
local outcome = record.behind == '1' and 'behind' or 'resumed'
call('HSET', SIDS, sid, outcome)
return { outcome }
