-- Shared: stores the tasks that were touched.

-- include put.lua

-- id -> what was stored of a delivered one, which a claim tells
local packed = {}

-- What is stored of the tasks. Appending by a count of one's own costs a fifth of asking Lua for the length.
local function write_tasks()
  local tasks, task_count, no_tasks = {}, 0, {}
  for i = 1, touched_count do
    local id = touched[i]
    local main, successor = mains[id], successors[id]
    if main then
      local text = cmsgpack.pack(main)
      if main[@RECEIPT] ~= 0 then
        packed[id] = text
      end
      tasks[task_count + 1], tasks[task_count + 2] = id, text
      task_count = task_count + 2
    else
      no_tasks[#no_tasks + 1] = id
    end
    if successor ~= nil then
      local parked = string.format('\1%s', id)
      if successor then
        tasks[task_count + 1], tasks[task_count + 2] = parked, cmsgpack.pack(successor)
        task_count = task_count + 2
      else
        no_tasks[#no_tasks + 1] = parked
        successors[id] = nil
      end
    end
  end
  for i = 1, task_count, @CHUNK do
    redis.call('HSET', KEYS[@STATE], unpack(tasks, i, math.min(i + @CHUNK_REST, task_count)))
  end
  for i = 1, #no_tasks, @CHUNK do
    redis.call('HDEL', KEYS[@STATE], unpack(no_tasks, i, math.min(i + @CHUNK_REST, #no_tasks)))
  end
end

local function write_bodies()
  local texts, text_count, gone = {}, 0, {}
  for i = 1, body_count do
    local name = body_names[i]
    local body = bodies[name]
    if body then
      texts[text_count + 1], texts[text_count + 2] = name, body
      text_count = text_count + 2
    else
      gone[#gone + 1] = name
    end
  end
  for i = 1, text_count, @CHUNK do
    redis.call('HSET', KEYS[@BODY], unpack(texts, i, math.min(i + @CHUNK_REST, text_count)))
  end
  for i = 1, #gone, @CHUNK do
    redis.call('HDEL', KEYS[@BODY], unpack(gone, i, math.min(i + @CHUNK_REST, #gone)))
  end
  bodies, body_names, body_count = {}, {}, 0
end

-- What is stored in the sets, by state. Lists are made when they are needed.
local function write_places()
  local to, to_count, from, from_count = {}, {}, {}, {}
  for i = 1, touched_count do
    local is = stands[i]
    if is ~= nil then
      local id = touched[i]
      local was = stood[id]
      if was and was ~= is then
        for place = was == true and @SCHEDULED or was, was == true and @CLAIMED or was do
          local list, count = from[place] or {}, (from_count[place] or 0) + 1
          list[count] = id
          from[place], from_count[place] = list, count
        end
      end
      stood[id] = is
    end
  end
  -- From the last to the first: a short set is a list, which the server goes through from its beginning to find the
  -- place of what comes in, and so does not pass what came in just before.
  for i = touched_count, 1, -1 do
    local is = stands[i]
    if is then
      local list, count = to[is] or {}, to_count[is] or 0
      list[count + 1], list[count + 2] = scores[i], touched[i]
      to[is], to_count[is] = list, count + 2
    end
  end
  touched, touched_count, numbers, stands, scores = {}, 0, {}, {}, {}
  if limits and from_count[@CLAIMED] and limits[@MAX_RUNNING] > 0 then
    chance = true
  end
  -- First out, then in: where it was is not always known.
  for i = 1, from_count[@SCHEDULED] or 0, @CHUNK do
    redis.call('ZREM', KEYS[@SCHEDULED], unpack(from[@SCHEDULED], i, math.min(i + @CHUNK_REST, from_count[@SCHEDULED])))
  end
  for i = 1, from_count[@READY] or 0, @CHUNK do
    redis.call('ZREM', KEYS[@READY], unpack(from[@READY], i, math.min(i + @CHUNK_REST, from_count[@READY])))
  end
  for i = 1, from_count[@CLAIMED] or 0, @CHUNK do
    redis.call('ZREM', KEYS[@CLAIMED], unpack(from[@CLAIMED], i, math.min(i + @CHUNK_REST, from_count[@CLAIMED])))
  end
  for i = 1, to_count[@SCHEDULED] or 0, @CHUNK do
    redis.call('ZADD', KEYS[@SCHEDULED], unpack(to[@SCHEDULED], i, math.min(i + @CHUNK_REST, to_count[@SCHEDULED])))
  end
  for i = 1, to_count[@READY] or 0, @CHUNK do
    redis.call('ZADD', KEYS[@READY], unpack(to[@READY], i, math.min(i + @CHUNK_REST, to_count[@READY])))
  end
  for i = 1, to_count[@CLAIMED] or 0, @CHUNK do
    redis.call('ZADD', KEYS[@CLAIMED], unpack(to[@CLAIMED], i, math.min(i + @CHUNK_REST, to_count[@CLAIMED])))
  end
end

-- `wanted`: how many more there should be in line, if keys hold some.
local function write(wanted)
  if touched_count > 0 then
    write_tasks()
    write_places()
  end
  if changed_count > 0 then
    write_keys(wanted or 0)
  end
  if body_count > 0 then
    write_bodies()
  end
end
