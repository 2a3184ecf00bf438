-- Shared: the outbox: how tasks ended that are nodes of flows, in order, until somebody has looked after their flows.
-- Messages are where tasks are, so that no verb needs a further key and none outlives them: \2 and its number, of STATE ->
-- packed message (MESSAGE_FIELDS); the same of BODY -> its result. So 1,000 are read without the results, of 1 MiB each.

-- include record.lua

-- Those that come in: each as event, mark, retries, result or false.
local messages, message_count = {}, 0

local function post(event, node, retries, result)
  message_count = message_count + 1
  messages[message_count] = { event, node, retries, result or false }
end
