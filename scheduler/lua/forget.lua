-- forget: a session that nobody works on loses its memory. Its runs stay until their retention is over.
-- Arguments: session, its last activity as the caller knows it: what came later is not forgotten
-- Replies: forgotten | moved (it was used since) | busy <run> | missing
-- Moves: none
-- Derived keys: session and its lists; the records of the runs that it remembers

-- include sessions

local session, known = take(), tonumber(take())

local at = tonumber(call('ZSCORE', SESSIONS, session) or nil)
if not at then return { 'missing' } end
if at ~= known then return { 'moved' } end
local active = active_run(session)
if active then return { 'busy', active.id } end

for _, id in ipairs(call('LRANGE', BEGUN .. session, 0, -1)) do
  if read(id, 'id')[1] then call('HSET', of(id, RUN), 'forgotten', 1) end
end
call('DEL', SESSION .. session, NEXT .. session, BEGUN .. session)
if call('EXISTS', BY_SESSION .. session) == 0 then
  call('ZREM', SESSIONS, session)
  call('ZREM', SESSIONS_OF .. string.match(session, '^[^:]*'), session)
end
return { 'forgotten' }
