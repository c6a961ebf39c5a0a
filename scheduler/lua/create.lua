-- create: a run is accepted, with its record, its first event and its place in session and queue, or nothing is written.
-- Arguments: digest, on_busy (enqueue, reject, interrupt, rollback), start (moment, delay), event, event of a run that it
--   overtakes, most runs behind another in a session, fields (list of name, value)
-- Replies: created <run> <1 if behind another> <now> <run it cancelled> | already <run> | conflict <run> | busy <run>
--   | full | broken <key>
-- Moves: -> queued; queued -> cancelled, waiting -> cancelled (whom it overtakes in its session)
-- Derived keys: idem, session and its lists, indexes; those of runs that it overtakes

-- include sessions

-- A moment is given as itself or as a delay; nil where neither is given.
local function take_moment()
  local at, delay = take(), take()
  if at ~= '' then return tonumber(at) end
  if delay ~= '' then return now + tonumber(delay) end
end

local digest, on_busy, start = take(), take(), take_moment()
local body, overtaken_body, most_behind, given = take(), take(), tonumber(take()), take_list()

if call('EXISTS', RUN) == 1 then return { 'already', own } end

local record = { id = own, status = '', changes = {}, seq = 0, moves = 0 }
local initial = {
  id = own, schema = 1, agent = '', session = '', tenant = '', queue = '', idem = '', digest = digest, metadata = '',
  created_at = now, wait = '', reason = '', expires_at = '', fence = 0, token = '', worker = '', rev = 0, last = '',
  step = 0, state = '', open = '', hold = '', over = '', limits = '', cancel = '', forgotten = '', behind = '', overtakes = '',
  crashes = 0, crashes_total = 0, rings = 0, rung = '', not_before = '', deferrals = 0, deferral = '', mirror_status = '', epoch = '',
}
for i = 1, #given, 2 do initial[given[i]] = given[i + 1] end
for field, value in pairs(initial) do set(record, field, value) end

if record.idem ~= '' then
  local known = call('GET', IDEM .. record.idem)
  local known_digest = known and call('HGET', of(known, RUN), 'digest')
  if known_digest then return { known_digest == digest and 'already' or 'conflict', known } end
end

local active = active_run(record.session)
if active and on_busy == 'reject' then return { 'busy', active.id } end
if active and call('LLEN', NEXT .. record.session) >= most_behind then return { 'full' } end
local others, damaged = overtaken(active, on_busy)
if damaged then return { 'broken', damaged } end

add(record, body)
local due = admit(record, active, on_busy, start)
move(record, 'queued', due)
-- Whoever creates a run that is due makes its job in RQ at once, and that is its first ring.
if start then set(record, 'not_before', start) elseif due then set(record, 'rung', record.moves) end
save(record)
index(own, now, record.agent, record.tenant, record.session)
if record.idem ~= '' then call('SET', IDEM .. record.idem, own) end

local cancelled = ''
for _, other in ipairs(others or {}) do
  local outcome, promoted = stop(other, on_busy, overtaken_body)
  if outcome == 'cancelled' then cancelled = other.id end
  if promoted == own then
    set(record, 'behind', '')
    if not start then set(record, 'rung', record.moves) end
    save(record)
  end
end
return { 'created', own, record.behind, now, cancelled }
