-- reap: the lease of a run is taken from an owner that is gone.
-- Arguments: token, why (expired, dead), event if it is queued again, event if it is cancelled, event and reason if it is one
--   crash too many, crashes at a step, crashes in all
-- Replies: requeued | cancelled <promoted run> | failed <promoted run> | gone (another owner, or none) | alive | missing
--   | broken <field>
-- Moves: running -> queued, running -> cancelled, running -> failed
-- Derived keys: ledgers, session and its queue, idem, indexes

-- include sessions

local token, why, requeued_body, cancelled_body = take(), take(), take(), take()
local poison_body, poison_reason = take(), take()
local crashes_at_step, crashes_in_all = tonumber(take()), tonumber(take())

local record, refusal = find(own)
if not record then return refusal end
if record.status ~= 'running' or record.token ~= token then return { 'gone' } end
if why == 'expired' and tonumber(call('ZSCORE', LEASES, own) or 0) > now then return { 'alive' } end

local crashes, crashes_total = record.crashes + 1, record.crashes_total + 1
local outcome, body, reason = 'queued', requeued_body, ''
if record.cancel ~= '' then
  outcome, body, reason = 'cancelled', cancelled_body, record.cancel
elseif crashes >= crashes_at_step or crashes_total >= crashes_in_all then
  outcome, body, reason = 'failed', poison_body, poison_reason
end

add(record, body)
set(record, 'crashes', crashes)
set(record, 'crashes_total', crashes_total)
if outcome ~= 'queued' then return { outcome, close(record, outcome, reason) } end
settle(record)
move(record, 'queued', now)
save(record)
return { 'requeued', '' }
