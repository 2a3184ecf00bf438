<?php

declare(strict_types=1);

namespace Stanchion\Compat;

use Stanchion\Client;
use Stanchion\Exception\LeaseLost;
use Stanchion\Internal\Errors;
use Stanchion\Internal\Hold;
use Stanchion\Internal\OlderClient;

/**
 * For code written against a class with these static methods, on keys `Lock:` + key. New code uses Client::lock().
 *
 * A lock that is not released stays until its time ends, also after the end of the script.
 */
final class HashLock
{
    /** Give up at once if the holder's time ends later than the wait. */
    public const FAIL_FAST = 0;
    /** Wait all the same: the holder may release it earlier. */
    public const KEEP_WAITING = 1;

    /** The number of LeaseLost. */
    private const LOST = -2;
    /** The shortest delay of a release that the store knows. */
    private const LEAST_DELAY = 0.05;

    private static ?Client $client = null;
    private static int|float|null $adoptUnexpiring = null;

    /** @var array<string|int, Hold> by key */
    private static array $holds = [];

    private function __construct()
    {
    }

    /**
     * What all locks are on from now on. Without it, it is STANCHION_URL.
     *
     * @param object|string|null $client as in RedisLock
     * @param int|float|null $adoptUnexpiring as in RedisLock
     */
    public static function setClient(
        #[\SensitiveParameter] object|string|null $client,
        int|float|null $adoptUnexpiring = null,
    ): void {
        self::$client = OlderClient::open($client, foreignShare: true);
        self::$adoptUnexpiring = $adoptUnexpiring;
    }

    /**
     * Locks a key. The methods may be called on what is returned, too.
     *
     * @param int|float $timeWait how long to wait in line, in seconds; 0 does not wait
     * @param int|float $maxExecuteTime after so many seconds the lock is free again, if it is not released
     * @param int $policy FAIL_FAST or KEEP_WAITING
     * @throws Timeout it stayed busy
     */
    public static function getLock(
        string|int $key,
        int|float $timeWait = 0,
        int|float $maxExecuteTime = 3600,
        int $policy = self::FAIL_FAST,
    ): self {
        $client = self::$client ??= Client::connect(foreignShare: true);
        $failFast = $policy === self::FAIL_FAST;
        $adopt = self::$adoptUnexpiring;
        $hold = Hold::take($client, (string) $key, $timeWait, $maxExecuteTime, $adopt, $failFast, 'maxExecuteTime');
        if ($hold === null) {
            $busy = Errors::timeout((string) $key);
            throw Timeout::of($busy->getCode(), $busy->getMessage(), $busy->isRetryable());
        }
        self::$holds[$key] = $hold;
        return new self();
    }

    /**
     * Releases a key.
     *
     * @param int|float $delayAfter nobody gets the lock for so many seconds more
     * @throws LostLock it was not ours until now; what is there is left alone
     */
    public static function releaseLock(string|int $key, int|float $delayAfter = 0): void
    {
        $hold = self::hold($key);
        unset(self::$holds[$key]);
        $cooldown = $delayAfter > 0 ? max($delayAfter, self::LEAST_DELAY) : null;
        try {
            $hold->release($cooldown);
        } catch (LeaseLost $lost) {
            throw self::lost($key, $lost);
        }
    }

    /**
     * Has a lock last for so many seconds from now on, but not less than it would.
     *
     * @throws LostLock it is not ours any more
     */
    public static function prolongate(string|int $key, int|float $maxExecuteTime = 3600): void
    {
        try {
            self::hold($key)->extend($maxExecuteTime);
        } catch (LeaseLost $lost) {
            throw self::lost($key, $lost);
        }
    }

    private static function hold(string|int $key): Hold
    {
        return self::$holds[$key] ?? throw self::lost($key, null);
    }

    private static function lost(string|int $key, ?LeaseLost $cause): LostLock
    {
        return new LostLock("the lock \"$key\" is not ours", $cause?->getCode() ?? self::LOST, $cause);
    }
}
