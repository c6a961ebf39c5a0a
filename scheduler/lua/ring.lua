-- ring: RQ is told that a queued run wants a worker.
-- Keys: the last four are RQ's: the queue, its intermediate list, its scheduled jobs, the job
-- Arguments: the job's field of status, the word in it that says queued, the words that say that a person cancelled it (list)
-- Replies: rung | waits (its entry is still in the queue) | no_job (the caller enqueues it) | cancel (what a person asked of
--   RQ; not overwritten) | no <status, behind or early> | missing | broken <field>
-- Moves: none

-- include records

local status_field, queued_word, cancelled_words = take(), take(), take_list()
local QUEUE, INTERMEDIATE, SCHEDULED, JOB = unpack(KEYS, #KEYS - 3)

local record, refusal = find(own)
if not record then return refusal end
if record.status ~= 'queued' then return { 'no', record.status } end
if record.behind == '1' then return { 'no', 'behind' } end
local not_before = tonumber(record.not_before)
if not_before and not_before > now then return { 'no', 'early' } end

local shown = call('HGET', JOB, status_field)
for _, word in ipairs(cancelled_words) do
  if shown == word then return { 'cancel' } end
end

-- The entry of a run that is in the queue is not doubled. It is looked for only where it may have been lost: at the sixth
-- sweep, which comes after a minute, and then each ten minutes.
local function entry_is_lost()
  if tostring(record.moves) ~= record.rung or call('LLEN', QUEUE) == 0 then return true end
  local due_for_long = record.rings >= 6 and (record.rings - 6) % 10 == 0
  return due_for_long and not call('LPOS', QUEUE, own)
end
local push = entry_is_lost()

set(record, 'rung', tostring(record.moves))
save(record)
if call('EXISTS', JOB) == 0 then return { 'no_job' } end
call('LREM', INTERMEDIATE, 0, own)
call('ZREM', SCHEDULED, own)
call('HSET', JOB, status_field, queued_word)
call('PERSIST', JOB)
if not push then return { 'waits' } end
call('RPUSH', QUEUE, own)
return { 'rung' }
