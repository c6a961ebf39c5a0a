-- hasten: a run that was put off is due now, for a worker has come that can run it.
-- Replies: hastened | no <status> | missing | broken <field>
-- Moves: none

-- include records

local record, refusal = find(own)
if not record then return refusal end
if record.status ~= 'queued' or record.behind == '1' or record.deferrals == 0 then return { 'no', record.status } end

schedule(record, now)
set(record, 'not_before', '')
set(record, 'deferrals', 0)
save(record)
return { 'hastened' }
