//! Samples that break one rule each: a linter that catches nothing is worth nothing.

use crate::rules::check;

/// Keeps every rule as each of these verbs.
const GOOD_ACQUIRE: &str = "local time = redis.call('TIME')
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
redis.call('HSET', KEYS[2], 'fence', string.format('%.0f', time[1] * 1000000))
return { 1, time[1], 5 }
end
return { 3, redis.call('PTTL', KEYS[1]), false }";
const GOOD_RELEASE: &str = "local function wake(client, seq)
redis.pcall('PUBLISH', 'stanchion:wake:' .. client, seq)
end
if redis.call('GET', KEYS[1]) == ARGV[1] then
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[2], 'x', 'y')
wake('a', 'b')
return { 7 }
end
return { 6, 0, 0, 0, 0 }";

#[test]
fn good_samples_pass() {
    let joined = "#time[2] == 6 and time[1] .. time[2]";
    let joined = GOOD_ACQUIRE.replace("string.format('%.0f', time[1] * 1000000)", joined);
    assert_eq!(check("acquire", &joined), Vec::<String>::new());
    assert_eq!(check("acquire", GOOD_ACQUIRE), Vec::<String>::new());
    assert_eq!(check("release", GOOD_RELEASE), Vec::<String>::new());
    assert_eq!(check("release", &GOOD_RELEASE.replace("{ 7 }", "7")), Vec::<String>::new(), "the code alone");
}

/// Each row: the verb, the good sample, what is replaced by what, and a word of the complaint.
#[test]
fn bad_samples_are_caught() {
    let rows = [
        ("acquire", "'SET', KEYS[1]", "'SET', 'Lock:a'", "not a literal KEYS[n]"),
        ("acquire", "'SET', KEYS[1]", "'SET', ARGV[1]", "not a literal KEYS[n]"),
        ("acquire", "'SET', KEYS[1]", "'SET', KEYS[1] .. ':x'", "not a literal KEYS[n]"),
        ("acquire", "'SET', KEYS[1]", "'SET', KEYS[ARGV[1]]", "not a literal"),
        ("acquire", "'SET', KEYS[1]", "'SET', KEYS[2 * i]", "not a literal"),
        ("acquire", "'SET', KEYS[1]", "'SET', KEYS[3 * i - 3]", "KEYS has gaps"),
        ("acquire", "'SET', KEYS[1]", "'SET', KEYS[3 * j]", "not a literal"),
        ("acquire", "ARGV[2]", "ARGV[i + 1]", "ARGV has an index"),
        ("acquire", "local time", "local key = KEYS[1]\nlocal time", "KEYS is used other than"),
        (
            "acquire",
            "redis.call('PTTL', KEYS[1])",
            "redis.call(ARGV[3], KEYS[1])",
            "command is not a literal",
        ),
        ("acquire", "local time", "local call = redis.call\nlocal time", "other than by calling it"),
        ("acquire", "KEYS[2]", "KEYS[3]", "KEYS has gaps"),
        ("acquire", "ARGV[2]", "ARGV[4]", "ARGV has gaps"),
        ("acquire", "if redis", "redis.call('TIME')\nif redis", "TIME twice"),
        ("acquire", "time[1], 5 }", "redis.call('TIME')[1], 5 }", "TIME twice"),
        (
            "acquire",
            "if redis",
            "redis.call('DEL', KEYS[1])\nif redis",
            "begins with a write that is Removing",
        ),
        ("acquire", "{ 3,", "{ 99,", "no code"),
        ("acquire", "{ 3,", "{ ARGV[1],", "no code"),
        ("release", "return { 7 }", "return 77", "no code"),
        ("acquire", "'%.0f'", "'%d'", "written by %.0f"),
        ("acquire", "string.format('%.0f', time[1] * 1000000)", "tostring(time[1] * 1000000)", "tostring"),
        ("acquire", "string.format('%.0f', time[1] * 1000000)", "time[1] * 1000000 .. ''", "`..`"),
        ("acquire", "string.format('%.0f', time[1] * 1000000)", "time[1] .. time[2]", "`..`"),
        ("acquire", "string.format('%.0f', time[1] * 1000000)", "cjson.encode(time)", "cjson"),
        ("acquire", "string.format('%.0f', time[1] * 1000000)", "math.random(9)", "random"),
        ("acquire", "time[1], 5", "tiem[1], 5", "tiem is not allowed"),
        ("acquire", "local time", "#!lua flags=no-writes\nlocal time", "shebang"),
        (
            "acquire",
            "return { 3",
            "redis.call('KEYS', KEYS[1])\nreturn { 3",
            "not in the documented ACL rule",
        ),
        (
            "acquire",
            "return { 3",
            "while true do redis.call('GET', KEYS[1]) end\nreturn { 3",
            "without a bound",
        ),
        ("release", "redis.pcall('PUB", "redis.call('PUB", "PUBLISH by call"),
        ("release", "redis.call('DEL'", "redis.pcall('DEL'", "DEL by pcall"),
        ("release", "wake('a', 'b')", "wake('a', 'b')\nredis.call('GET', KEYS[1])", "after PUBLISH"),
        ("release", "redis.call('DEL', KEYS[1])\n", "", "begins with a write that is Adding"),
        (
            "release",
            "redis.call('DEL', KEYS[1])",
            "if ARGV[1] then redis.call('SET', KEYS[1], 'x') else redis.call('DEL', KEYS[1]) end",
            "begins with a write that is Adding",
        ),
        ("holder", "redis.call('DEL', KEYS[1])", "redis.call('GET', KEYS[1])", "begins with a write"),
        ("release", "local function wake(client", "wake = function(client", "not a local function"),
    ];
    for (verb, from, to, complaint) in rows {
        let good = if verb == "acquire" { GOOD_ACQUIRE } else { GOOD_RELEASE };
        assert!(good.contains(from), "{from}");
        let wrong = check(verb, &good.replacen(from, to, 1));
        assert!(wrong.iter().any(|line| line.contains(complaint)), "{to:?} is not caught: {wrong:?}");
    }
}
