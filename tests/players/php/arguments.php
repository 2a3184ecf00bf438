<?php

/** The arguments of a request, under the names and in the units of the package. */

declare(strict_types=1);

use Stanchion\Exponential;
use Stanchion\Missed;
use Stanchion\OnDuplicate;
use Stanchion\Overlap;
use Stanchion\Rate;

/** What PHP's own types do not allow. */
final class Cannot extends Exception
{
}

/** The answer of a forked child. */
final class ChildSays extends Exception
{
    public function __construct(public readonly array $answer)
    {
        parent::__construct('a child has answered');
    }
}

/** A value, also one that JSON cannot say. */
function special(mixed $value): mixed
{
    if (!is_array($value) || count($value) !== 1) {
        return $value;
    }
    return match (array_key_first($value)) {
        '$number' => ['nan' => NAN, 'inf' => INF, '-inf' => -INF][$value['$number']],
        '$text' => hex2bin($value['$text']),
        '$hex' => hex2bin($value['$hex']),
        default => $value,
    };
}

function seconds(mixed $value): mixed
{
    $value = special($value);
    return is_int($value) || is_float($value) ? $value / 1000 : $value;
}

function millis(?float $seconds): int|float|null
{
    return $seconds === null ? null : round($seconds * 1000);
}

function policy(mixed $told): mixed
{
    return match (true) {
        $told === 'keep' => OnDuplicate::keep(),
        $told === 'skip' => OnDuplicate::skip(),
        $told === 'replace' => OnDuplicate::replace(),
        isset($told['debounce_ms']) => OnDuplicate::debounce(seconds($told['debounce_ms'])),
        isset($told['throttle_ms']) => OnDuplicate::throttle(seconds($told['throttle_ms'])),
        default => $told,
    };
}

function backoff(mixed $told): mixed
{
    if (!is_array($told) || array_is_list($told)) {
        return is_array($told) ? array_map(seconds(...), $told) : $told;
    }
    $parts = [];
    foreach ($told as $name => $value) {
        $parts[$name] = in_array($name, ['base', 'max'], true) ? seconds($value) : special($value);
    }
    return new Exponential(...$parts);
}

/** In PHP false stands for "no limit". */
function rate(mixed $told): mixed
{
    if (!is_array($told) || !isset($told['count'])) {
        return $told ?? false;
    }
    $parts = [];
    foreach ($told as $name => $value) {
        $parts[$name === 'per_ms' ? 'per' : $name] = $name === 'per_ms' ? seconds($value) : special($value);
    }
    return new Rate(...$parts);
}

/** What becomes of missed slots: a word of the enum, or a number. */
function missed(mixed $told): mixed
{
    return is_string($told) ? Missed::tryFrom($told) ?? $told : special($told);
}

function overlap(mixed $told): mixed
{
    return is_string($told) ? Overlap::tryFrom($told) ?? $told : special($told);
}

const NAMES = [
    'max_len' => 'maxLen', 'max_running' => 'maxRunning', 'key_concurrency' => 'keyConcurrency', 'key_rate' => 'keyRate',
    'max_attempts' => 'maxAttempts', 'fail_fast' => 'failFast', 'without_store' => 'withoutStore', 'dead_max' => 'deadMax', 'dead_bytes' => 'deadBytes',
    'concurrency' => 'prefetch', 'lock_prefix' => 'lockPrefix', 'queue_prefix' => 'queuePrefix', 'foreign_share' => 'foreignShare',
    'after_end' => 'afterEnd', 'after_failure' => 'afterFailure', 'after_all' => 'afterAll',
    'tls_ca' => 'tlsCa', 'tls_cert' => 'tlsCert', 'tls_key' => 'tlsKey',
];
const TIMES = [
    'ttl_ms' => 'ttl', 'per_ms' => 'per', 'max_hold_ms' => 'maxHold', 'wait_ms' => 'wait', 'adopt_unexpiring_ms' => 'adoptUnexpiring',
    'cooldown_ms' => 'cooldown', 'delay_ms' => 'delay', 'due_ms' => 'due', 'expires_ms' => 'expires',
    'lease_ms' => 'lease', 'stale_ms' => 'stale', 'max_run_ms' => 'maxRun', 'grace_ms' => 'grace', 'dead_age_ms' => 'deadAge',
    'older_than_ms' => 'olderThan', 'timeout_ms' => 'timeout', 'jitter_ms' => 'jitter', 'starts_ms' => 'starts', 'ends_ms' => 'ends',
    'after_ms' => 'after', 'keep_result_ms' => 'keepResult', 'time_ms' => 'time',
];
const LOCK = ['ttl_ms', 'renew', 'max_hold_ms', 'wait_ms', 'fail_fast', 'adopt_unexpiring_ms', 'label', 'weight'];
const DEAD = ['ids', 'receipts', 'count', 'reason', 'prefix', 'older_than_ms'];
const CLAIM = ['max', 'lease_ms', 'renew', 'max_run_ms', 'wait_ms', 'timeout_ms'];
const CACHED = ['ttl_ms', 'stale_ms', 'beta', 'wait_ms', 'lease_ms', 'max_run_ms', 'without_store', 'label'];
const TASK = [
    'id', 'payload', 'headers', 'delay_ms', 'due_ms', 'priority', 'max_attempts', 'expires_ms', 'on_duplicate', 'kind', 'timeout_ms',
    'backoff', 'keep_result_ms', 'key',
];
const SCHEDULE = [
    'id', 'when', 'tz', 'missed', 'overlap', 'jitter_ms', 'starts_ms', 'ends_ms', 'paused', 'payload', 'headers', 'priority',
    'max_attempts', 'expires_ms', 'key',
];
const CONFIG = [
    'max_len', 'dead_max', 'dead_age_ms', 'dead_bytes', 'intake', 'events', 'max_running', 'rate', 'key_concurrency', 'key_rate',
];
const LIMITS = ['key', 'rate', 'weight'];
const NODE = [...TASK, 'queue', 'after', 'after_end', 'after_failure', 'after_all'];

/** A request's arguments, under the names and in the units of the package. */
function arguments(array $request, array $names): array
{
    $found = [];
    foreach ($names as $name) {
        if (!array_key_exists($name, $request)) {
            continue;
        }
        match (true) {
            $name === 'on_duplicate' => $found['onDuplicate'] = policy($request[$name]),
            $name === 'backoff' => $found['backoff'] = backoff($request[$name]),
            $name === 'missed' => $found['missed'] = missed($request[$name]),
            $name === 'overlap' => $found['overlap'] = overlap($request[$name]),
            // In PHP null stands for "not given" and false for "no limit".
            in_array($name, ['max_len', 'max_running', 'key_concurrency'], true) => $found[NAMES[$name]] = $request[$name] ?? false,
            in_array($name, ['rate', 'key_rate'], true) => $found[NAMES[$name] ?? $name] = rate($request[$name]),
            isset(TIMES[$name]) => $found[TIMES[$name]] = seconds($request[$name]),
            default => $found[NAMES[$name] ?? $name] = special($request[$name]),
        };
    }
    return $found;
}
