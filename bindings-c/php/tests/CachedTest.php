<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Exception\InvalidArgument;
use Stanchion\Exception\LockTimeout;

/** Cached values: what the package adds. What they do is in the scenarios. */
final class CachedTest extends StoreCase
{
    /** @dataProvider stores */
    public function testAValueIsComputedOnceAndEverybodyGetsItAsJsonGivesItBack(string $kind): void
    {
        $client = $this->connect($kind);
        $value = ['prices' => [1, 2.0, null], 'naïve' => "☃\0", 'nested' => (object) ['a' => 1]];
        $plain = ['prices' => [1, 2.0, null], 'naïve' => "☃\0", 'nested' => ['a' => 1]];
        self::assertSame($plain, $client->cached('a', ttl: 60, compute: fn () => $value));
        self::assertSame($plain, $client->cached('a', 60.0, fn () => self::fail('computed again')));
        $client->invalidate('a');
        self::assertNull($client->cached('a', 60, fn () => null));
        self::assertNull($client->cached('a', 60, fn () => 1));
    }

    /** @dataProvider stores */
    public function testWhatTheFunctionThrowsGoesOnAndTheNextComputes(string $kind): void
    {
        $client = $this->connect($kind);
        $own = new \DomainException('own');
        $thrown = self::assertThrows(\DomainException::class, fn () => $client->cached('a', 60, fn () => throw $own));
        self::assertSame($own, $thrown);
        foreach (["\xff", NAN, fopen('php://memory', 'r')] as $value) {
            $wrong = self::assertThrows(InvalidArgument::class, fn () => $client->cached('a', 60, fn () => $value));
            self::assertStringContainsString('JSON', $wrong->getMessage());
        }
        self::assertSame(7, $client->cached('a', 60, fn () => 7));
    }

    /** @dataProvider stores */
    public function testAComputationThatWasInvalidatedIsNotStored(string $kind): void
    {
        $client = $this->connect($kind);
        self::assertSame('before', $client->cached('a', 60, function () use ($client): string {
            $timeout = fn () => $client->cached('a', 60, fn () => self::fail('two compute'), wait: 0);
            self::assertThrows(LockTimeout::class, $timeout);
            $client->invalidate('a');
            return 'before';
        }));
        self::assertSame('after', $client->cached('a', 60, fn () => 'after'));
    }

    /** @dataProvider stores */
    public function testBadArgumentsAreRefusedBeforeAnythingIsComputed(string $kind): void
    {
        $client = $this->connect($kind);
        $wrong = [
            ['ttl' => '60'], ['ttl' => null], ['ttl' => 0], ['ttl' => -1], ['ttl' => NAN], ['stale' => true],
            ['beta' => '1'], ['beta' => -1], ['beta' => NAN], ['wait' => -1], ['lease' => 0.01],
            ['lease' => 10, 'maxRun' => 5], ['label' => "a\n"], ['name' => ''],
        ];
        $right = ['name' => 'a', 'ttl' => 60, 'compute' => fn () => self::fail('computed')];
        foreach ($wrong as $one) {
            self::assertThrows(InvalidArgument::class, fn () => $client->cached(...array_merge($right, $one)));
        }
        self::assertThrows(InvalidArgument::class, fn () => $client->invalidate(''));
    }
}
