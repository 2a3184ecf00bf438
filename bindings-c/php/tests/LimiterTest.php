<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Exception\InvalidArgument;
use Stanchion\LimitKind;

/** Limiters. */
final class LimiterTest extends StoreCase
{
    /** @dataProvider stores */
    public function testSoManyAreAllowedAndThenItSaysWhen(string $url): void
    {
        $client = $this->connect($url);
        foreach (LimitKind::cases() as $kind) {
            // Windows are those of the clock: one of a year ends while no test runs, but at New Year.
            $per = $kind === LimitKind::FixedWindow ? 365 * 86_400 : 3_600;
            $api = $client->limiter('api', 1, $per, kind: $kind);
            self::assertSame('api', $api->name());
            self::assertTrue($api->tryTake()->allowed);
            $refused = $api->take(wait: 5);
            self::assertFalse($refused->allowed);
            self::assertGreaterThan(0, $refused->retryAfter);
            self::assertLessThanOrEqual($per, $refused->retryAfter);
        }
    }

    /** @dataProvider stores */
    public function testWhoWaitsGetsItsTurn(string $url): void
    {
        $quick = $this->connect($url)->limiter('quick', 20, 1);
        $begun = microtime(true);
        for ($index = 0; $index < 3; $index++) {
            self::assertTrue($quick->take()->allowed);
        }
        self::assertGreaterThanOrEqual(0.1, microtime(true) - $begun);
    }

    /** @dataProvider stores */
    public function testWhatCanNeverBeAllowedIsRefused(string $url): void
    {
        $this->expectException(InvalidArgument::class);
        $this->connect($url)->limiter('api', 1, 1)->tryTake(2);
    }
}
