-- defer: a queued run that this worker cannot run is put off, each time for longer.
-- Arguments: id of this deferral, reason, first and longest delay ms
-- Replies: deferred <ms> | already | no <status> | missing | broken <field>
-- Moves: none

-- include records

local deferral, reason, first, longest = take(), take(), tonumber(take()), tonumber(take())

local record, refusal = find(own)
if not record then return refusal end
if record.deferral == deferral then return { 'already' } end
if record.status ~= 'queued' or record.behind == '1' then return { 'no', record.status } end

local delay = math.min(first * 2 ^ math.min(record.deferrals, 20), longest)
schedule(record, now + delay)
set(record, 'not_before', now + delay)
set(record, 'deferral', deferral)
set(record, 'deferrals', record.deferrals + 1)
set(record, 'reason', reason)
set(record, 'rung', '')
save(record)
return { 'deferred', delay }
