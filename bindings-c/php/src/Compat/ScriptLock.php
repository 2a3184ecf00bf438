<?php

declare(strict_types=1);

namespace Stanchion\Compat;

use Stanchion\Client;
use Stanchion\Exception\LeaseLost;
use Stanchion\Internal\Hold;
use Stanchion\Internal\OlderClient;

/**
 * For code written against a class with these methods, which lets a script run once at a time. New code uses
 * Client::lock(). The lock is on one store; it is not a quorum of several.
 *
 * A lock that is not unlocked stays until its validity ends, also after the end of the script.
 */
final class ScriptLock
{
    private readonly Client $client;
    private ?Hold $hold = null;

    /**
     * @param object|string|null $client a connection of phpredis or Predis, a client, or a URL (STANCHION_URL)
     * @param string $name the lock's name; its key is `Lock:` + name
     * @param int|float $validity after so many seconds the lock is free again, if it is not unlocked
     * @param int $retries how often older classes tried again
     * @param int|float $sleep how many seconds they slept before each retry: this one waits that long in all, in line
     * @param int|float|null $adoptUnexpiring as in RedisLock
     */
    public function __construct(
        #[\SensitiveParameter] object|string|null $client,
        private readonly string $name,
        private readonly int|float $validity = 60,
        private readonly int $retries = 3,
        private readonly int|float $sleep = 0.2,
        private readonly int|float|null $adoptUnexpiring = null,
    ) {
        $this->client = OlderClient::open($client, foreignShare: true);
    }

    /** Whether it could be locked. */
    public function lock(): bool
    {
        $wait = max(0, $this->retries) * $this->sleep;
        $adopt = $this->adoptUnexpiring;
        $hold = Hold::take($this->client, $this->name, $wait, $this->validity, $adopt, called: 'validity');
        $this->hold = $hold ?? $this->hold;
        return $hold !== null;
    }

    /** Whether it was locked by this object until now. Another's lock is left alone. */
    public function unlock(): bool
    {
        $hold = $this->hold;
        $this->hold = null;
        try {
            $hold?->release();
            return $hold !== null;
        } catch (LeaseLost) {
            return false;
        }
    }
}
