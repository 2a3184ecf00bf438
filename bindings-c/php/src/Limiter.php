<?php

declare(strict_types=1);

namespace Stanchion;

use FFI;
use FFI\CData;
use Stanchion\Internal\Arguments;
use Stanchion\Internal\Native;
use Stanchion\Internal\Times;

/**
 * So many in so long, for all who use a limiter of this name; made by Client::limiter(). It keeps nothing between
 * calls, so it serves the requests of FPM as it does one long program.
 *
 * The store's clock decides. A request whose answer is lost is sent again, and may then have taken twice: there is
 * never more than the limit, but there may be less.
 */
final class Limiter
{
    /** How long take() waits if nothing is said, in seconds. */
    private const WAIT = 10;

    /** @internal */
    public function __construct(
        private readonly Client $client,
        private readonly string $name,
        private readonly int $n,
        private readonly int $perMicros,
        private readonly int $burst,
        private readonly LimitKind $kind,
    ) {
    }

    /** The name. */
    public function name(): string
    {
        return $this->name;
    }

    /** Takes so many if they are allowed now; otherwise nothing, and says when they would be, to the microsecond. */
    public function tryTake(int $n = 1): Taken
    {
        return $this->taken($n, 0);
    }

    /**
     * Takes so many, waiting for its turn. Who waits is in line in the order of arrival, and goes on when its turn
     * has come by the store's clock, without asking again. If the turn would come later than `wait`, it is refused at
     * once. Handlers of signals run when the wait is over.
     *
     * @param int|float|null $wait in seconds, 3600 at most (10)
     */
    public function take(int $n = 1, mixed $wait = null): Taken
    {
        return $this->taken($n, Times::needed('wait', $wait ?? self::WAIT));
    }

    private function taken(int $count, int $wait): Taken
    {
        $native = Native::get();
        $retryAfter = $native->make('int64_t');
        $status = $native->call(
            'stanchion_limiter_take',
            $this->client->handle(),
            $this->name,
            strlen($this->name),
            FFI::addr($this->limit($native, $count, $wait)),
            FFI::addr($retryAfter),
        );
        return $status === 0 ? new Taken(true) : new Taken(false, $retryAfter->cdata / 1e6);
    }

    private function limit(Native $native, int $count, int $wait): CData
    {
        $limit = $native->defaults('stanchion_limit', 'stanchion_limit_init');
        $limit->n = $this->n;
        $limit->per_us = $this->perMicros;
        $limit->burst = $this->burst;
        $limit->kind = (int) array_search($this->kind, LimitKind::cases(), true);
        $limit->count = Arguments::number('n', $count, 0);
        $limit->wait_ms = $wait;
        return $limit;
    }
}
