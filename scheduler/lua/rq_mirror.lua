-- rq_mirror: RQ shows what the record of a run says: its job's status, the one registry that lists it, its executions and
-- results. It looks at the record in the same moment, so that no late call can make RQ tell an older story.
-- Stands alone: no prelude.
-- Keys: 1 record, 2 mirror (runs whose last change RQ was not told of), then RQ's: 3 job, 4 its executions, 5 its results,
--   6 queue, 7 its intermediate list, 8 started, 9 scheduled, 10 deferred, 11 finished, 12 failed, 13 canceled;
--   and where a worker calls: 14 worker, 15 its executions
-- Derived keys: the prefix of executions and the execution's id
-- Arguments: 1 run, 2 status and 3 fence that the record must have, 4 number of the key that lists the run (0: none),
--   5 its score there ('': when what is kept expires), 6 seconds that an ended run is kept ('': it is live),
--   7 prefix of executions, 8 execution of the caller or '', 9 seconds until RQ gives it up ('': it is over),
--   10 state of the worker, 11 counter of the worker that a result raises, 12 seconds worked,
--   13 fields of the job (list), then the fields of the execution, or of the result
-- Replies: done | again (the record has moved on) | no_job | cancel | resume (what a person asked of RQ; not overwritten)
-- Moves: none

local call = redis.call
local record, outbox, job, executions, results = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local queue, intermediate, started, canceled, worker, held = KEYS[6], KEYS[7], KEYS[8], KEYS[13], KEYS[14], KEYS[15]
local run, status, registry, score, kept = ARGV[1], ARGV[2], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local prefix, mine, seconds = ARGV[7], ARGV[8], tonumber(ARGV[9])
local live, begins = kept == '', seconds ~= nil
local now = tonumber(call('TIME')[1]) -- RQ's readers judge by the real clock

-- A worker that RQ has given up shows nothing, until it beats again.
local shows_worker = worker and call('EXISTS', worker) == 1

local function drop(execution)
  call('DEL', prefix .. execution)
  call('ZREM', executions, execution)
  call('ZREM', started, run .. ':' .. execution)
end

-- The caller's execution is over, whoever owns the run by now.
if mine ~= '' and not begins then
  drop(mine)
  if worker and call('SREM', held, run .. ':' .. mine) == 1 and shows_worker then
    call('HSET', worker, 'state', ARGV[10])
    call('HINCRBYFLOAT', worker, 'total_working_time', ARGV[12])
  end
end

-- What the caller took is claimed. A quick run has ended by now: then nobody else says so.
if begins then call('LREM', intermediate, 1, run) end

local seen = call('HMGET', record, 'status', 'fence')
if seen[1] ~= status or seen[2] ~= ARGV[3] then return { 'again' } end

local told = not call('ZSCORE', outbox, run)
local shown = call('HGET', job, 'status')
if not shown then
  if live then call('ZADD', outbox, 'NX', 0, run) else call('ZREM', outbox, run) end
  return { 'no_job' }
end
if live and (shown == 'canceled' or shown == 'stopped') then return { 'cancel' } end
if told and shown == 'queued' and (status == 'failed' or status == 'budget_exceeded') then return { 'resume' } end

for other = 9, 13 do
  if other ~= registry then call('ZREM', KEYS[other], run) end
end
if registry > 0 then call('ZADD', KEYS[registry], score ~= '' and score or now + kept, run) end
if KEYS[registry] == canceled then call('LREM', queue, 1, run) end
for _, execution in ipairs(call('ZRANGE', executions, 0, -1)) do
  if not (begins and execution == mine) then drop(execution) end
end

local rest = 14 + ARGV[13]
call('HSET', job, unpack(ARGV, 14, rest - 1))
if begins then
  call('HSET', prefix .. mine, unpack(ARGV, rest))
  call('EXPIRE', prefix .. mine, seconds)
  call('ZADD', executions, now + seconds + 60, mine)
  call('ZADD', started, now + seconds, run .. ':' .. mine)
  if worker then
    call('SADD', held, run .. ':' .. mine)
    call('EXPIRE', held, seconds + 60)
  end
  if shows_worker then call('HSET', worker, 'state', ARGV[10]) end
elseif ARGV[rest] and not told then
  call('XADD', results, 'MAXLEN', '~', 10, '*', unpack(ARGV, rest))
  if shows_worker then call('HINCRBY', worker, ARGV[11], 1) end
end

for _, key in ipairs({ job, results }) do
  if live then call('PERSIST', key) else call('EXPIRE', key, kept) end
end
call('ZREM', outbox, run)
call('HSET', record, 'mirror_status', status)
return { 'done' }
