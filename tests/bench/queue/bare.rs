//! The least that a queue can do: a hash of payloads, a set of what is ready, a set of what is claimed,
//! one script per step, no attempts, no versions, no states, no retries.

use redis::{Connection, Script};

use crate::baseline::connect;

const ENQUEUE: &str = "
local now = redis.call('TIME')[1] * 1
for i = 1, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('ZADD', KEYS[2], now, ARGV[i])
end
return #ARGV / 2";

const CLAIM: &str = "
local now = redis.call('TIME')[1] * 1
local ids = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, ARGV[1])
if #ids == 0 then return {} end
redis.call('ZREM', KEYS[2], unpack(ids))
for _, id in ipairs(ids) do redis.call('ZADD', KEYS[3], now + 30, id) end
return { ids, redis.call('HMGET', KEYS[1], unpack(ids)) }";

const ACK: &str = "
redis.call('HDEL', KEYS[1], unpack(ARGV))
return redis.call('ZREM', KEYS[3], unpack(ARGV))";

/// See the module's documentation.
pub struct BareQueue {
    connection: Connection,
    keys: [String; 3],
    enqueue: Script,
    claim: Script,
    ack: Script,
}

impl BareQueue {
    pub fn new(url: &str, name: &str) -> Self {
        let keys = ["payload", "ready", "claimed"].map(|part| format!("bare:{name}:{part}"));
        let mut connection = connect(url);
        let _: i64 = redis::cmd("DEL").arg(&keys).query(&mut connection).unwrap();
        let (enqueue, claim, ack) = (Script::new(ENQUEUE), Script::new(CLAIM), Script::new(ACK));
        Self { connection, keys, enqueue, claim, ack }
    }

    pub fn enqueue(&mut self, ids: &[String], payload: &[u8]) {
        let mut call = self.enqueue.prepare_invoke();
        call.key(&self.keys);
        for id in ids {
            call.arg(id).arg(payload);
        }
        let added: usize = call.invoke(&mut self.connection).unwrap();
        assert_eq!(added, ids.len());
    }

    pub fn claim(&mut self, max: usize) -> Vec<String> {
        let claimed: Vec<Vec<Vec<u8>>> =
            self.claim.key(&self.keys).arg(max).invoke(&mut self.connection).unwrap();
        let ids = claimed.into_iter().next().unwrap_or_default();
        ids.into_iter().map(|id| String::from_utf8(id).unwrap()).collect()
    }

    pub fn ack(&mut self, ids: &[String]) {
        let acked: usize = self.ack.key(&self.keys).arg(ids).invoke(&mut self.connection).unwrap();
        assert_eq!(acked, ids.len());
    }
}
