-- Shared: entries of the intake become tasks.

-- include intake.lua
-- include end_lease.lua

-- Takes in at most `most` entries: first those whose score is no time, then those that are due. Of new ids only as many
-- as there is room for; the others wait in the intake, and do not keep those behind them, which live, from being moved.
-- Most queues have no entries: the functions in here are made when there are some, and not by each script.
local function take_intake(most)
  if intake_size == 0 then
    return
  end

  -- Whether a task may have this id: 1 to @ID_MOST bytes of UTF-8 without control characters.
  local function is_id(id)
    if #id == 0 or #id > @ID_MOST or string.find(id, '%c') then
      return false
    end
    if not string.find(id, '[\128-\255]') then
      return true
    end
    local rest = id
    for _, letter in ipairs({ '\194[\160-\191]', '[\195-\223][\128-\191]', '\224[\160-\191][\128-\191]',
      '[\225-\236\238\239][\128-\191][\128-\191]', '\237[\128-\159][\128-\191]',
      '\240[\144-\191][\128-\191][\128-\191]', '[\241-\243][\128-\191][\128-\191][\128-\191]',
      '\244[\128-\143][\128-\191][\128-\191]' }) do
      rest = string.gsub(rest, letter, ' ')
    end
    return not string.find(rest, '[\128-\255]')
  end

  local function intake_task(version, due)
    local task = { version, due, 0, 0, @INTAKE_MAX_ATTEMPTS, now, 0, 0, 0, 0, '', 0, 0, 0, 0 }
    return task
  end

  local function refuse(id, score, reason)
    local receipt = next_number()
    record_death(string.sub(id, 1, @ID_MOST), intake_task(0, intake_due(score)), reason, receipt, false, not is_id(id))
  end

  -- One entry becomes a task, moves the one that is pending, or makes or moves the successor of a running one.
  local function take_in(id, due)
    local version = next_number()
    local main, runs = find(id)
    enqueued = enqueued + 1
    if not main then
      local task = intake_task(version, due)
      put(id, task)
      happen(@EVENT_ADDED, id, task)
    elseif successors[id] then
      successors[id][@VERSION], successors[id][@DUE] = version, due
      touch(id)
    elseif runs then
      local task = intake_task(version, due)
      follow(id, task, 0)
      happen(@EVENT_ADDED, id, task)
    else
      main[@VERSION] = version
      move(id, math.max(due, main[@BACKOFF] or 0))
    end
  end

  if max_len then
    most = math.min(most, math.max(max_len - live, 0) + @INTAKE_LOOK)
  end
  local beyond = redis.call('ZRANGE', KEYS[@INTAKE], '(@INTAKE_SCORE_MAX', '+inf', 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
  local entries = redis.call('ZRANGE', KEYS[@INTAKE], '-inf', now / 1000, 'BYSCORE', 'LIMIT', 0,
    most - #beyond / 2, 'WITHSCORES')
  local gone, valid = {}, {}
  for i = 1, #beyond, 2 do
    gone[#gone + 1] = beyond[i]
    refuse(beyond[i], beyond[i + 1], 'the score is no Unix time in seconds')
  end
  for i = 1, #entries, 2 do
    if is_id(entries[i]) then
      valid[#valid + 1] = entries[i]
    end
  end
  fetch(valid)
  for i = 1, #entries, 2 do
    local id = entries[i]
    if mains[id] == nil then
      refuse(id, entries[i + 1], 'no task may have this id')
      gone[#gone + 1] = id
    elseif mains[id] or not max_len or live < max_len then
      take_in(id, intake_due(entries[i + 1]))
      gone[#gone + 1] = id
    end
  end
  for i = 1, #gone, @CHUNK do
    redis.call('ZREM', KEYS[@INTAKE], unpack(gone, i, math.min(i + @CHUNK_REST, #gone)))
  end
end
