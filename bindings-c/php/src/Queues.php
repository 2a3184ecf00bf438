<?php

declare(strict_types=1);

namespace Stanchion;

use Stanchion\Internal\Claiming;
use Stanchion\Internal\Memory;
use Stanchion\Internal\Native;

/** Several queues that are claimed from in the order given. Made by Client::queues(). */
final class Queues
{
    /**
     * @internal
     * @param list<string> $names
     */
    public function __construct(private readonly Client $client, private readonly array $names)
    {
    }

    /**
     * Takes tasks of the first queue that has some, as Queue::claim().
     *
     * @param int|float|null $lease in seconds
     * @param int|float|null $wait in seconds
     * @param int|float|null $maxRun in seconds
     * @param int|float|null $timeout in seconds
     * @return list<Claim>
     */
    public function claim(
        int $max = 1,
        mixed $lease = null,
        mixed $wait = null,
        ?bool $renew = null,
        mixed $maxRun = null,
        mixed $timeout = null,
    ): array {
        $native = Native::get();
        $claiming = new Claiming($native, $this->client, $max, $lease, $wait, $renew, $maxRun, $timeout);
        $memory = new Memory($native);
        $native->call(
            'stanchion_queues_claim',
            $this->client->handle(),
            $memory->texts($this->names),
            count($this->names),
            ...$claiming->arguments(),
        );
        return $claiming->claims();
    }
}
