#!lua name=txl_1

-- Sessions that several servers share: every change of one is one call, atomic,
-- by the clock of Redis. Loaded by FUNCTION LOAD (Redis 7).
--
-- What is stored of session NAME (TENANT/ID):
--   txl:{NAME}:m  hash
--     epoch     counts those who came to own it, 0 at first
--     nonce     random, of the one who owns it or did so last
--     owner     the server that has it, or had it last
--     until     milliseconds since 1970 up to which it is owned; 0: by nobody
--     request   what its owner runs; the same request takes over at once
--     position  ids that it holds
--     chain     digest of all changes of its ids, made by the servers
--     base      position at the begin of the turn that runs; else position
--     born      random, of its creation
--     used      when a turn began last, as the servers write times
--     model, width, head, intent    the servers'; intent "": no turn runs
--   txl:{NAME}:i  its ids, `width` bytes each
--   txl:{NAME}:t  record of its last turn; absent: none
--   txl:{NAME}:e  what the turn that runs has said; absent: nothing
--   txl:ids       sorted set of all NAMEs, score 0
--   txl:expire    sorted set of all NAMEs by their expiry, milliseconds
--
-- KEYS[1] is "txl:{NAME}". ARGV of what changes a session begins with
--   epoch nonce position chain
-- as the caller knows them: it has to be the one that changed the session last.
-- Numbers are decimal; `lease` is in milliseconds.
--
-- Answers begin with
--   OK        it is done
--   AGAIN     it was done by an earlier call of the same change
--   SAME      (acquire, load) and what the caller holds is current: epoch;
--             of acquire nonce; milliseconds left as load's busy
--   BUSY      another one owns it: milliseconds left
--   FENCED    another one owns it, or did so since: position
--   POSITION  the ids are not those that the caller knows: position
--   GONE      there is none of that name
--   EXISTS    (create) there is one of that name
--   MODEL     (acquire) it is of another model
--
-- function  ARGV behind the four             what it does
-- acquire   model request new_nonce owner    the caller owns it, epoch + 1;
--           lease                            answers as load
-- begin     intent used lease expire         a turn begins
-- append    count next_chain ids events      ids of a turn that runs
--           lease
-- end       count next_chain ids head record a turn ends with these ids; it is
--           expire                           owned by nobody
-- touch     lease                            it is owned for longer
-- release   -                                it is owned by nobody
-- rewind    to next_chain head owner nonce   it holds the first `to` ids
--           expire
--
-- Without the four:
-- create    born model width head chain count ids expire
-- remove    born (empty: any) expired (0: any; else only where it has expired
--           by then, and nobody owns it, or FENCED)
-- load      epoch nonce position chain (empty: none are held)
--           OK epoch nonce position chain base born model width head intent
--           used record events ids busy; absent ones are ""; busy:
--           milliseconds left
-- Without a session, KEYS[1] is "txl:ids":
-- list      min max count    ZRANGE's BYLEX: NAME position used head for each
-- expired   now count        NAME position for each that has expired by then

local FIELDS = {'epoch', 'nonce', 'position', 'chain', 'base', 'born', 'model',
                'width', 'head', 'intent', 'used'}

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function decimal(number)
  return string.format('%.0f', number)
end

local function name_of(key)
  return string.sub(key, 6, -2)
end

-- Milliseconds for which it is still owned.
local function left(key)
  local till = redis.call('HGET', key .. ':m', 'until')
  return math.max(tonumber(till or 0) - now(), 0)
end

-- What keeps the caller from changing the session; nil: nothing.
local function fence(key, args)
  local at = redis.call('HMGET', key .. ':m', 'epoch', 'nonce', 'position',
                        'chain')
  if not at[1] then return {'GONE', '0'} end
  if at[1] ~= args[1] then return {'FENCED', at[3]} end -- fence: epoch
  if at[2] ~= args[2] then return {'FENCED', at[3]} end -- fence: nonce
  local joins = at[3] == args[3] and at[4] == args[4]
  if not joins then return {'POSITION', at[3]} end -- fence: position and chain
  return nil
end

-- Whether this very change was made: nobody else's stands behind it.
local function is_done(key, args, position, chain)
  local at = redis.call('HMGET', key .. ':m', 'epoch', 'nonce', 'position',
                        'chain')
  return at[1] == args[1] and at[2] == args[2] and at[3] == position and
    at[4] == chain
end

local function set_expiry(key, expire)
  redis.call('ZADD', 'txl:expire', expire, name_of(key))
end

local function contents(key, status)
  local answer = redis.call('HMGET', key .. ':m', unpack(FIELDS))
  table.insert(answer, 1, status)
  for _, part in ipairs({':t', ':e', ':i'}) do
    table.insert(answer, redis.call('GET', key .. part))
  end
  for i = 1, 15 do answer[i] = answer[i] or '' end
  answer[16] = decimal(left(key))
  return answer
end

local function load(keys, args)
  local key = keys[1]
  local wrong = fence(key, args)
  if wrong and wrong[1] == 'GONE' then return wrong end
  return wrong and contents(key, 'OK') or {'SAME', args[1], decimal(left(key))}
end

local function acquire(keys, args)
  local key = keys[1]
  local model, request, nonce, owner = args[5], args[6], args[7], args[8]
  local wrong = fence(key, args)
  if wrong and wrong[1] == 'GONE' then return wrong end
  local at = redis.call('HMGET', key .. ':m', 'epoch', 'nonce', 'request',
                        'model')
  if at[4] ~= model then return {'MODEL'} end
  if at[2] == nonce then return contents(key, 'AGAIN') end
  local busy = left(key)
  if busy > 0 and (request == '' or request ~= at[3]) then
    return {'BUSY', decimal(busy)}
  end
  local epoch = decimal(at[1] + 1)
  redis.call('HSET', key .. ':m', 'epoch', epoch, 'nonce', nonce, 'owner',
             owner, 'request', request, 'until', decimal(now() + args[9]))
  if not wrong then return {'SAME', epoch, nonce, decimal(busy)} end
  local answer = contents(key, 'OK')
  answer[16] = decimal(busy)
  return answer
end

local function begin(keys, args)
  local key = keys[1]
  local wrong = fence(key, args)
  if wrong then return wrong end
  redis.call('HSET', key .. ':m', 'intent', args[5], 'used', args[6], 'base',
             args[3], 'until', decimal(now() + args[7]))
  redis.call('DEL', key .. ':e')
  set_expiry(key, args[8])
  return {'OK'}
end

-- Behind the fence: ids and chain.
local function take_on(key, args)
  local position = decimal(args[3] + args[5])
  if args[7] ~= '' then
    local width = redis.call('HGET', key .. ':m', 'width')
    redis.call('SETRANGE', key .. ':i', decimal(args[3] * width), args[7])
  end
  redis.call('HSET', key .. ':m', 'position', position, 'chain', args[6])
  return position
end

local function append(keys, args)
  local key = keys[1]
  if is_done(key, args, decimal(args[3] + args[5]), args[6]) then
    return {'AGAIN'}
  end
  local wrong = fence(key, args)
  if wrong then return wrong end
  take_on(key, args)
  redis.call('HSET', key .. ':m', 'until', decimal(now() + args[9]))
  if args[8] ~= '' then redis.call('APPEND', key .. ':e', args[8]) end
  return {'OK'}
end

local function finish(keys, args)
  local key = keys[1]
  if is_done(key, args, decimal(args[3] + args[5]), args[6]) then
    return {'AGAIN'}
  end
  local wrong = fence(key, args)
  if wrong then return wrong end
  local position = take_on(key, args)
  redis.call('HSET', key .. ':m', 'base', position, 'head', args[8], 'intent',
             '', 'until', '0')
  redis.call('DEL', key .. ':e', key .. ':t')
  if args[9] ~= '' then redis.call('SET', key .. ':t', args[9]) end
  set_expiry(key, args[10])
  return {'OK'}
end

local function rewind(keys, args)
  local key = keys[1]
  local to, chain, nonce = args[5], args[6], args[9]
  if redis.call('HGET', key .. ':m', 'chain') == chain then return {'AGAIN'} end
  local wrong = fence(key, args)
  if wrong then return wrong end
  local at = redis.call('HMGET', key .. ':m', 'owner', 'width')
  local busy = left(key)
  if busy > 0 and at[1] ~= args[8] then return {'BUSY', decimal(busy)} end
  local ids = ''
  if tonumber(to) > 0 then
    ids = redis.call('GETRANGE', key .. ':i', 0, decimal(to * at[2] - 1))
  end
  redis.call('SET', key .. ':i', ids)
  redis.call('DEL', key .. ':e', key .. ':t')
  redis.call('HSET', key .. ':m', 'epoch', decimal(args[1] + 1), 'nonce', nonce,
             'owner', args[8], 'request', '', 'until', '0', 'position', to,
             'base', to, 'chain', chain, 'head', args[7], 'intent', '')
  set_expiry(key, args[10])
  return {'OK'}
end

-- Of these two position and chain may be any.
local function is_owner(key, args)
  local at = redis.call('HMGET', key .. ':m', 'epoch', 'nonce', 'position')
  if not at[1] then return {'GONE', '0'} end
  if at[1] == args[1] and at[2] == args[2] then return nil end
  return {'FENCED', at[3]}
end

local function touch(keys, args)
  local wrong = is_owner(keys[1], args)
  if wrong then return wrong end
  redis.call('HSET', keys[1] .. ':m', 'until', decimal(now() + args[5]))
  return {'OK'}
end

local function release(keys, args)
  local wrong = is_owner(keys[1], args)
  if wrong then return wrong end
  redis.call('HSET', keys[1] .. ':m', 'until', '0')
  return {'OK'}
end

local function create(keys, args)
  local key = keys[1]
  local born = redis.call('HGET', key .. ':m', 'born')
  if born == args[1] then return {'AGAIN'} end
  if born then return {'EXISTS'} end
  redis.call('HSET', key .. ':m', 'epoch', '0', 'nonce', args[1], 'owner', '',
             'until', '0', 'request', '', 'position', args[6], 'chain', args[5],
             'base', args[6], 'born', args[1], 'model', args[2], 'width',
             args[3], 'head', args[4], 'intent', '')
  redis.call('SET', key .. ':i', args[7])
  redis.call('ZADD', 'txl:ids', 0, name_of(key))
  set_expiry(key, args[8])
  return {'OK'}
end

local function remove(keys, args)
  local key = keys[1]
  local at = redis.call('HMGET', key .. ':m', 'born', 'position')
  if args[1] ~= '' and at[1] ~= args[1] then return {'AGAIN'} end
  if args[2] ~= '0' then
    local expire = redis.call('ZSCORE', 'txl:expire', name_of(key))
    local expired = expire and tonumber(expire) <= tonumber(args[2])
    if not expired or left(key) > 0 then return {'FENCED', at[2] or '0'} end
  end
  redis.call('DEL', key .. ':m', key .. ':i', key .. ':t', key .. ':e')
  redis.call('ZREM', 'txl:ids', name_of(key))
  redis.call('ZREM', 'txl:expire', name_of(key))
  return {'OK'}
end

local function list(keys, args)
  local names = redis.call('ZRANGE', keys[1], args[1], args[2], 'BYLEX',
                           'LIMIT', 0, args[3])
  local answer = {}
  for _, name in ipairs(names) do
    local at = redis.call('HMGET', 'txl:{' .. name .. '}:m', 'position', 'used',
                          'head')
    for _, part in ipairs({name, at[1] or '0', at[2] or '', at[3] or ''}) do
      table.insert(answer, part)
    end
  end
  return answer
end

local function expired(_, args)
  local names = redis.call('ZRANGE', 'txl:expire', '-inf', args[1], 'BYSCORE',
                           'LIMIT', 0, args[2])
  local answer = {}
  for _, name in ipairs(names) do
    local key = 'txl:{' .. name .. '}'
    if left(key) == 0 then
      table.insert(answer, name)
      table.insert(answer, redis.call('HGET', key .. ':m', 'position') or '0')
    end
  end
  return answer
end

redis.register_function('txl_1_acquire', acquire)
redis.register_function('txl_1_begin', begin)
redis.register_function('txl_1_append', append)
redis.register_function('txl_1_end', finish)
redis.register_function('txl_1_touch', touch)
redis.register_function('txl_1_release', release)
redis.register_function('txl_1_rewind', rewind)
redis.register_function('txl_1_create', create)
redis.register_function('txl_1_remove', remove)
redis.register_function('txl_1_load', load)
redis.register_function('txl_1_list', list)
redis.register_function('txl_1_expired', expired)
