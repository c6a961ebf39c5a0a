-- mirrored: RQ has been told of a status.
-- Arguments: moves when it was read, the status
-- Replies: done | again (the status has changed since) | missing
-- Moves: none

local moves, status = take(), take()

local known = call('HGET', RUN, 'moves')
if not known then
  call('ZREM', MIRROR, own)
  return { 'missing' }
end
if known ~= moves then return { 'again' } end
call('ZREM', MIRROR, own)
call('HSET', RUN, 'mirror_status', status)
return { 'done' }
