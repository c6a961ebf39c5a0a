-- Takes run ids from RQ's queues, the first queue first, each into the intermediate list of its queue.
--
-- KEYS   1 RQ's mark that workers are suspended   2, 3 a queue and its intermediate list   4, 5 the next …
-- ARGV   1 how many at most
-- Reply  suspended | taken, then the number of the queue and the run id of each
-- Makes no transition of the record. Not to be sent again: what a lost reply took is rung again when its time comes.

if redis.call('EXISTS', KEYS[1]) == 1 then
  return {'suspended'}
end

local reply, room = {'taken'}, tonumber(ARGV[1])
for key = 2, #KEYS, 2 do
  while room > 0 do
    local run = redis.call('LMOVE', KEYS[key], KEYS[key + 1], 'LEFT', 'RIGHT')
    if not run then
      break
    end
    reply[#reply + 1], reply[#reply + 2] = key / 2, run
    room = room - 1
  end
end
return reply
