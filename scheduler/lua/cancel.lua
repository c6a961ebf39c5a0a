-- cancel: a running run is asked to end, any other ends at once.
-- Arguments: signal id, reason (user, interrupt, rollback), event if it ends here
-- Replies: asked | cancelled <promoted run> | already <asked, cancelled> | missing | broken <field or key> | over <status>
-- Moves: queued -> cancelled, waiting -> cancelled
-- Derived keys: session and its queue, idem, indexes

-- include sessions

local sid, reason, body = take(), take(), take()

local record, refusal = find(own)
if not record then return refusal end
local damaged = damage(record)
if damaged then return { 'broken', damaged } end
local known = call('HGET', SIDS, sid)
if known then return { 'already', known } end
if ENDED[record.status] then return { 'over', record.status } end

if record.cancel == '' then call('HSET', SIDS, sid, record.status == 'running' and 'asked' or 'cancelled') end
return { stop(record, reason, body) }
