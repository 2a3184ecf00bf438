<?php

declare(strict_types=1);

namespace Stanchion\Tests\Laravel;

/** A job that notes what it was told, and fails as often as it is told. */
final class Greeting
{
    /** @var list<string> */
    public static array $said = [];

    public int $tries = 3;

    public function __construct(private string $text, private int $failures = 0)
    {
    }

    public function handle(): void
    {
        self::$said[] = $this->text;
        if (count(array_keys(self::$said, $this->text)) <= $this->failures) {
            throw new \RuntimeException('not yet');
        }
    }
}
