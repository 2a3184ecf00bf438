<?php

declare(strict_types=1);

namespace Stanchion\Laravel;

use Illuminate\Container\Container;
use Illuminate\Contracts\Queue\Job as JobContract;
use Illuminate\Queue\Jobs\Job;
use Stanchion\Claim;
use Stanchion\Internal\Ahead;

/** A job of StanchionQueue. */
final class StanchionJob extends Job implements JobContract
{
    public function __construct(
        Container $container,
        private readonly Claim $claim,
        private readonly Ahead $ahead,
        ?string $connectionName,
        string $queue,
    ) {
        $this->container = $container;
        $this->connectionName = $connectionName;
        $this->queue = $queue;
    }

    /** @param int $delay try it again after so many seconds */
    public function release($delay = 0): void
    {
        parent::release($delay);
        $this->claim->nack($delay, 'released');
    }

    public function delete(): void
    {
        parent::delete();
        $this->ahead->done($this->claim);
    }

    public function attempts(): int
    {
        return $this->claim->attempt();
    }

    public function getJobId(): string
    {
        return $this->claim->id();
    }

    public function getRawBody(): string
    {
        return $this->claim->payload();
    }
}
