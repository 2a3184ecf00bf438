<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat;

use PHPUnit\Framework\TestCase;

require_once __DIR__ . '/autoload.php';

/** docs/MIGRATING.md. */
final class MigratingTest extends TestCase
{
    private const GUIDE = __DIR__ . '/../../../../docs/MIGRATING.md';

    public function testTestsThatItNamesAreThere(): void
    {
        $guide = (string) file_get_contents(self::GUIDE);
        self::assertGreaterThan(20, preg_match_all('/\b(test[A-Z]\w+)`/', $guide, $named));
        $tests = implode('', array_map('file_get_contents', glob(__DIR__ . '/../*/*Test.php') ?: []));
        foreach ($named[1] as $name) {
            self::assertTrue(str_contains($tests, "function $name("), $name);
        }
    }

    public function testItNamesEveryTestOfAnOlderFault(): void
    {
        $guide = (string) file_get_contents(self::GUIDE);
        $tests = implode('', array_map('file_get_contents', glob(__DIR__ . '/../*/*Test.php') ?: []));
        preg_match_all('/function (testOlder\w+)\(/', $tests, $there);
        foreach ($there[1] as $name) {
            self::assertTrue(str_contains($guide, "$name`"), $name);
        }
    }
}
