-- renew: the leases of a worker's runs, of those it still owns.
-- Arguments: lease ms, runs (list of run, token)
-- Replies: renewed {lost runs} {run, cancel, length of the inbox, ... of the runs that have news}
-- Moves: none
-- Derived keys: record and inbox of each run

local lease, runs = tonumber(take()), take_list()
local lost, flagged = {}, {}
for i = 1, #runs, 2 do
  local id, token = runs[i], runs[i + 1]
  local record = read(id, 'token', 'status', 'cancel')
  if record[1] == token and record[2] == 'running' then
    call('ZADD', LEASES, now + lease, id)
    local unread = tonumber(redis.pcall('LLEN', of(id, INBOX))) or 0
    if record[3] ~= '' or unread > 0 then
      flagged[#flagged + 1] = id
      flagged[#flagged + 1] = record[3]
      flagged[#flagged + 1] = unread
    end
  else
    lost[#lost + 1] = id
  end
end
return { 'renewed', lost, flagged }
