<?php

declare(strict_types=1);

namespace Stanchion;

use Stanchion\Internal\LockOptions;
use Stanchion\Internal\Named;

/** The two sides of a read-write lock. Made by Client::rwLock(). */
final class RwLock
{
    /** @internal */
    public function __construct(
        private readonly Client $client,
        private readonly string $name,
        private readonly LockOptions $options,
    ) {
    }

    /** The lock's name. */
    public function name(): string
    {
        return $this->name;
    }

    /** What readers acquire: any number of them may hold it, unless a writer does. */
    public function read(): Lock
    {
        return new Lock($this->client, Named::reader($this->name), $this->options);
    }

    /** What a writer acquires: nobody else holds anything then. Lease::downgrade() makes the writer a reader. */
    public function write(): Lock
    {
        return new Lock($this->client, Named::writer($this->name), $this->options);
    }
}
