-- Tables, strings and closures.   tables.lua ROUNDS
local rounds = tonumber(arg[1])
local state = 12345

-- A generator of our own: the same numbers in every version of Lua.
local function random(limit)
  state = (state * 1103515245 + 12345) % 2147483648
  return state // 65536 % limit
end

local function insert(tree, key)
  if not tree then return { key = key, value = "v" .. key } end
  if key < tree.key then
    tree.left = insert(tree.left, key)
  elseif key > tree.key then
    tree.right = insert(tree.right, key)
  end
  return tree
end

local function depth_sum(tree, depth)
  if not tree then return 0 end
  return depth + depth_sum(tree.left, depth + 1) + depth_sum(tree.right, depth + 1)
end

local function words(count)
  local parts = {}
  for i = 1, count do
    parts[#parts + 1] = string.format("%s%05d", string.rep(string.char(97 + random(26)), random(9) + 1), i)
  end
  return table.concat(parts, " ")
end

local function counters(count)
  local all = {}
  for i = 1, count do
    local kept = { i }
    all[i] = function(step)
      kept[#kept + 1] = step
      return #kept
    end
  end
  return all
end

local checksum = 0
for _ = 1, rounds do
  local tree
  for _ = 1, 6000 do tree = insert(tree, random(30000)) end
  checksum = checksum + depth_sum(tree, 1)

  local text, seen = words(6000), {}
  for word in text:gmatch("%a+%d+") do
    local key = word:sub(1, 4):upper()
    seen[key] = seen[key] or {}
    table.insert(seen[key], word:reverse())
  end
  local keys = {}
  for key, list in pairs(seen) do
    keys[#keys + 1] = key
    table.sort(list)
  end
  table.sort(keys)
  checksum = checksum + #keys + #text:gsub("%d", "")

  local called = 0
  local all = counters(3000)
  for turn = 1, 4 do
    for i = 1, #all do called = called + all[i](turn) end
  end
  if called ~= 3000 * (2 + 3 + 4 + 5) then error("tables.lua: a closure forgot something") end
end
print("checksum", checksum)
