-- delete: an ended run and all its keys, before its time.
-- Replies: deleted | missing | live <status> | broken <field>
-- Moves: none
-- Derived keys: idem, indexes

-- include sessions

local record, refusal = find(own)
if not record then return refusal end
if not ENDED[record.status] then return { 'live', record.status } end

if owns_idem(record) then call('DEL', IDEM .. record.idem) end
call('DEL', RUN, EVENTS, INBOX, CALLS, ASKS, SIDS, LIVE)
call('ZREM', MIRROR, own)
call('ZREM', EXPIRING, epitaph(record))
unindex(own, record.status, record.agent, record.tenant, record.session)
return { 'deleted' }
