<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use FFI\CData;
use Stanchion\Claim;
use Stanchion\Client;

/**
 * One call that claims: its options and the places for what it gives.
 *
 * @internal
 */
final class Claiming
{
    private readonly CData $options;
    private readonly Handles $claims;
    private readonly CData $count;

    public function __construct(
        Native $native,
        private readonly Client $client,
        private readonly int $max,
        mixed $lease,
        mixed $wait,
        ?bool $renew,
        mixed $maxRun,
        mixed $timeout,
    ) {
        Arguments::max('max', $max);
        $this->options = $native->defaults('stanchion_claim_options', 'stanchion_claim_options_init');
        $this->options->lease_ms = Times::span('lease', $lease);
        $this->options->wait_ms = Times::span('wait', $wait);
        $this->options->renew = Arguments::flag($renew);
        $this->options->max_run_ms = Times::span('maxRun', $maxRun);
        $this->options->timeout_ms = Times::span('timeout', $timeout);
        $this->claims = new Handles($native, $max, Claim::FREE);
        $this->count = $native->make('size_t');
    }

    /**
     * The arguments of the call after those for the queue.
     *
     * @return list<mixed>
     */
    public function arguments(): array
    {
        return [FFI::addr($this->options), $this->claims->places, $this->max, FFI::addr($this->count)];
    }

    /**
     * What the call gave.
     *
     * @return list<Claim>
     */
    public function claims(): array
    {
        $claims = [];
        for ($i = 0; $i < $this->count->cdata; $i++) {
            $claims[] = new Claim($this->client, $this->claims->places[$i]);
        }
        return $claims;
    }
}
