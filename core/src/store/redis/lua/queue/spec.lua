-- Shared: what is said of a task that is put in.

-- include record.lua

-- Options' text -> what it says; most items of a batch have the same.
local specs = {
  [''] = { due = now, priority = 0, max_attempts = @INTAKE_MAX_ATTEMPTS, expires = 0, policy = 'k', key = '', node = false },
}

-- "i" and in how many ms, or "a" and at what time; priority; max_attempts; ms until it expires or 0; policy: "k"
-- keep, "s" skip, "r" replace, "d" debounce with its max_wait, "t" throttle with its window; perhaps a key;
-- of a node of a flow, in lines of their own, its mark.
local function spec_of(options)
  local spec = specs[options]
  if not spec then
    local kind, due, priority, max_attempts, expires, policy, span, key, node =
      string.match(options, '^(%a)(%d+) (%d+) (%d+) (%d+) (%a)(%d+) ?([^\n]*)\n?(.*)$')
    due, expires = tonumber(due), tonumber(expires)
    spec = {
      due = kind == 'i' and now + due or due,
      priority = tonumber(priority),
      max_attempts = tonumber(max_attempts),
      expires = expires > 0 and now + expires or 0,
      policy = policy,
      span = tonumber(span),
      key = key,
      node = node ~= '' and node,
    }
    specs[options] = spec
  end
  return spec
end
