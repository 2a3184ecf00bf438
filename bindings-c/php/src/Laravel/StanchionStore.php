<?php

declare(strict_types=1);

namespace Stanchion\Laravel;

use Illuminate\Contracts\Cache\LockProvider;
use Illuminate\Contracts\Cache\Store;
use Stanchion\Client;

/**
 * A cache store whose locks are Stanchion's; everything else is done by another store.
 *
 *     Cache::extend('stanchion', fn () => Cache::repository(
 *         new StanchionStore(Cache::store('redis')->getStore(), $client),
 *     ));
 */
final class StanchionStore implements Store, LockProvider
{
    public function __construct(private readonly Store $store, private readonly Client $client)
    {
    }

    /**
     * @param string $name
     * @param int $seconds after so many it expires; 0 is a day
     * @param ?string $owner of StanchionLock::owner(), to take over its lock
     */
    public function lock($name, $seconds = 0, $owner = null): StanchionLock
    {
        return new StanchionLock($this->client, (string) $name, (int) $seconds, $owner);
    }

    /**
     * @param string $name
     * @param string $owner
     */
    public function restoreLock($name, $owner): StanchionLock
    {
        return $this->lock($name, 0, $owner);
    }

    public function get($key)
    {
        return $this->store->get($key);
    }

    public function many(array $keys)
    {
        return $this->store->many($keys);
    }

    public function put($key, $value, $seconds)
    {
        return $this->store->put($key, $value, $seconds);
    }

    public function putMany(array $values, $seconds)
    {
        return $this->store->putMany($values, $seconds);
    }

    public function increment($key, $value = 1)
    {
        return $this->store->increment($key, $value);
    }

    public function decrement($key, $value = 1)
    {
        return $this->store->decrement($key, $value);
    }

    public function forever($key, $value)
    {
        return $this->store->forever($key, $value);
    }

    public function forget($key)
    {
        return $this->store->forget($key);
    }

    public function flush()
    {
        return $this->store->flush();
    }

    public function getPrefix()
    {
        return $this->store->getPrefix();
    }
}
