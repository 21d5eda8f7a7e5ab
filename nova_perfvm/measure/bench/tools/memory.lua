-- SPDX-License-Identifier: Apache-2.0
-- What the memory of a machine gives, for sysbench 1.0:
--
--   sysbench memory.lua --mode=stream --mib=512 --threads=20 --time=30 run
--
-- stream is STREAM's triad, a[i] = b[i] + q c[i], counted as STREAM counts: 24 bytes.
-- chase follows pointers, each of which is in a cache line that is drawn by lot, so
-- that nothing is fetched ahead.  A thread works on memory of its own, which it is the
-- first to write: it is on the NUMA node of that thread.  LuaJIT compiles the loops.
local ffi = require("ffi")
ffi.cdef("void *malloc(size_t);")

sysbench.cmdline.options = {
  mode = {"stream or chase"},
  mib = {"MiB that all threads together work on", 1024},
}

local STEPS = 100000 -- of an event that follows pointers
local LINE = 16 -- 64 bytes of a cache line, in integers of four
local SCALAR = 3

local function pieces(bytes)
  return math.floor(sysbench.opt.mib * 2 ^ 20 / sysbench.opt.threads / bytes)
end

local function allocated(kind, bytes)
  local found = ffi.C.malloc(bytes)
  assert(found ~= nil, "not enough memory")
  return ffi.cast(kind, found)
end

local function stream()
  local n = pieces(24)
  local a = allocated("double *", n * 24)
  local b, c = a + n, a + 2 * n
  for i = 0, n - 1 do a[i], b[i], c[i] = 0, 1, 2 end
  return function()
    for i = 0, n - 1 do a[i] = b[i] + SCALAR * c[i] end
  end
end

local function chase()
  local n, at = pieces(LINE * 4), 0
  local links = allocated("int32_t *", n * LINE * 4)
  -- Numbers of lines: those of integers do not fit into one beyond 8 GiB.
  for i = 0, n - 1 do links[i * LINE] = i end
  -- Sattolo's shuffle: one ring of all lines.
  for i = n - 1, 1, -1 do
    local one, other = i * LINE, sysbench.rand.uniform(0, i - 1) * LINE
    links[one], links[other] = links[other], links[one]
  end
  return function()
    local i = at
    for _ = 1, STEPS do i = links[i * LINE] end
    at = i
  end
end

function thread_init()
  assert(jit.status(), "LuaJIT does not compile on this machine")
  event = sysbench.opt.mode == "chase" and chase() or stream()
end

function event() end -- sysbench wants one before threads begin

function sysbench.hooks.report_cumulative(stat)
  if sysbench.opt.mode == "chase" then
    print(('{"random_access_ns": %.4f}'):format(stat.latency_avg * 1e9 / STEPS))
  else
    local mib = stat.events * pieces(24) * 24 / 2 ^ 20
    print(('{"bandwidth_mib_per_second": %.4f}'):format(mib / stat.time_total))
  end
end
