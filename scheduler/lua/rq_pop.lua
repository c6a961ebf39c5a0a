-- rq_pop: run ids are taken from RQ's queues, the first queue first, each into the intermediate list of its queue. Of what a
-- queue holds half is taken at most, so that workers which take turns come to equal shares; the rest is still more urgent
-- than what the next queues hold.
-- Stands alone: no prelude. Not to be sent again: what a lost reply took is rung again when its time comes.
-- Keys: 1 RQ's mark that workers are suspended, 2 and 3 a queue and its intermediate list, 4 and 5 the next, ...
-- Arguments: 1 how many at most
-- Replies: suspended | taken, then the number of the queue and the run of each
-- Moves: none

if redis.call('EXISTS', KEYS[1]) == 1 then
  return {'suspended'}
end

local reply, room = {'taken'}, tonumber(ARGV[1])
for key = 2, #KEYS, 2 do
  local waiting = redis.call('LLEN', KEYS[key])
  local share = math.min(room, math.ceil(waiting / 2))
  for _ = 1, share do
    reply[#reply + 1], reply[#reply + 2] = key / 2, redis.call('LMOVE', KEYS[key], KEYS[key + 1], 'LEFT', 'RIGHT')
  end
  room = share < waiting and 0 or room - share
end
return reply
