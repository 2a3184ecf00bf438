-- Shared: how a rate is kept: each use moves its time (`tat`) on by one gap, and may come as much earlier as the burst says.
-- The generic cell rate algorithm, ITU-T I.371.

-- Microseconds between two of a rate of `count` per `per` ms, in quarters, which doubles add up exactly; and how much earlier
-- than its time one may come. Nine tenths of a gap of that are for who comes late: in no time `per` there are more than
-- count + burst, and a timer that counts milliseconds keeps up with a rate of some hundreds a second.
local function pace(count, per, burst)
  local gap = math.ceil(4000 * per / count) / 4
  return gap, (burst - 1) * gap + math.min(math.floor(gap * 36 / 10) / 4, @RATE_SLACK)
end

-- The time of a rate that may have been slower before, or kept by a clock that was ahead: the next use waits for no more than one
-- gap of what it is now.
local function tat_of(tat, count, per, burst)
  if count == 0 then
    return tat
  end
  local gap, slack = pace(count, per, burst)
  return math.min(tat, now_us + slack + gap)
end
