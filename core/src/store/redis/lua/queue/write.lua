-- Shared: stores the tasks that were touched. Needs task.lua.

-- id -> what was stored
local packed = {}

local function add(list, key, value)
  local length = #list
  list[length + 1] = key
  list[length + 2] = value
end

-- What is stored in the hashes; `body_of` a field is read again after this.
local function write_hashes()
  local tasks, no_tasks, texts, no_texts = {}, {}, {}, {}
  for _, id in ipairs(touched) do
    local main, successor = mains[id], successors[id]
    if main then
      packed[id] = cmsgpack.pack(main)
      add(tasks, id, packed[id])
    else
      no_tasks[#no_tasks + 1] = id
    end
    local body = bodies[id]
    if body then
      add(texts, id, body)
    elseif body == false then
      no_texts[#no_texts + 1] = id
    end
    bodies[id] = nil
    if successor ~= nil then
      local parked = string.format('\1%s', id)
      if successor then
        add(tasks, parked, cmsgpack.pack(successor))
        if bodies[parked] then
          add(texts, parked, bodies[parked])
        end
      else
        add(no_tasks, parked)
        add(no_texts, parked)
        successors[id] = nil
      end
      bodies[parked] = nil
    end
  end
  for i = 1, #tasks, 1000 do
    redis.call('HSET', KEYS[3], unpack(tasks, i, math.min(i + 999, #tasks)))
  end
  for i = 1, #texts, 1000 do
    redis.call('HSET', KEYS[4], unpack(texts, i, math.min(i + 999, #texts)))
  end
  for i = 1, #no_tasks, 1000 do
    redis.call('HDEL', KEYS[3], unpack(no_tasks, i, math.min(i + 999, #no_tasks)))
  end
  for i = 1, #no_texts, 1000 do
    redis.call('HDEL', KEYS[4], unpack(no_texts, i, math.min(i + 999, #no_texts)))
  end
end

-- What is stored in the sets.
local function write_places()
  local to = { {}, {}, {} }
  local from = { {}, {}, {} }
  for _, id in ipairs(touched) do
    local was, is = stood[id], stands[id]
    if is ~= nil then
      if is then
        add(to[is], scores[id], id)
      end
      for place = 1, 3 do
        if place ~= is and (was == true or was == place) then
          from[place][#from[place] + 1] = id
        end
      end
      stood[id], stands[id] = is, nil
    end
    is_touched[id] = nil
  end
  touched = {}
  for i = 1, #to[1], 1000 do
    redis.call('ZADD', KEYS[5], unpack(to[1], i, math.min(i + 999, #to[1])))
  end
  for i = 1, #to[2], 1000 do
    redis.call('ZADD', KEYS[6], unpack(to[2], i, math.min(i + 999, #to[2])))
  end
  for i = 1, #to[3], 1000 do
    redis.call('ZADD', KEYS[7], unpack(to[3], i, math.min(i + 999, #to[3])))
  end
  for i = 1, #from[1], 1000 do
    redis.call('ZREM', KEYS[5], unpack(from[1], i, math.min(i + 999, #from[1])))
  end
  for i = 1, #from[2], 1000 do
    redis.call('ZREM', KEYS[6], unpack(from[2], i, math.min(i + 999, #from[2])))
  end
  for i = 1, #from[3], 1000 do
    redis.call('ZREM', KEYS[7], unpack(from[3], i, math.min(i + 999, #from[3])))
  end
end

local function write()
  if #touched > 0 then
    write_hashes()
    write_places()
  end
end
