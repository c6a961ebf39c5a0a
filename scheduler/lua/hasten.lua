-- hasten: a queued run whose ring was used up, by workers that cannot run it, is due now: a worker has come that can.
-- Replies: hastened <queue> | no <status> | missing | broken <field>
-- Moves: none

-- include records

local record, refusal = find(own)
if not record then return refusal end
local was_put_off = record.deferrals > 0
local starts_later = not was_put_off and (tonumber(record.not_before) or 0) > now
local is_due = (tonumber(call('ZSCORE', DUE, own)) or 0) <= now
if record.status ~= 'queued' or record.behind == '1' or record.rung ~= '' or starts_later or is_due then
  return { 'no', record.status }
end

schedule(record, now)
set(record, 'not_before', '')
set(record, 'deferrals', 0)
set(record, 'rings', 0)
if was_put_off then set(record, 'reason', '') end
save(record)
return { 'hastened', record.queue }
