<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Missed;
use Stanchion\Overlap;
use Stanchion\Scheduled;

/** Methods that are called at set times. */
final class Reports
{
    /** @var list<string> */
    public array $made = [];

    #[Scheduled('0 3 * * *', ['all' => true], tz: 'Europe/Berlin', missed: Missed::Skip, overlap: Overlap::Skip)]
    public function nightly(mixed $payload): void
    {
        $this->made[] = 'nightly of ' . json_encode($payload);
    }

    #[Scheduled('every 1h', missed: 7)]
    #[Scheduled('@yearly', 'old', 'leap', starts: new \DateTimeImmutable('2100-01-01T00:00:00Z'), priority: 9, maxAttempts: 3)]
    public function cleanUp(): void
    {
        $this->made[] = 'cleaned up';
    }

    public function onDemand(): void
    {
    }
}
