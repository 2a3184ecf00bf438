<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI\CData;

/**
 * Places for handles that a call of the library gives. Those that no object has noted are freed when this one is
 * gone, and at the end of the request: a signal handler may throw or end the program, or memory may end, when the call
 * has just returned.
 *
 * @internal
 */
final class Handles
{
    /** @var array<int, array{CData, int, string}> */
    private static array $all = [];

    public readonly CData $places;

    /** @param string $free the function that frees such a handle */
    public function __construct(Native $native, int $count, string $free)
    {
        $this->places = $native->makeMany('int64_t', $count);
        self::$all[spl_object_id($this)] = [$this->places, $count, $free];
    }

    public function __destruct()
    {
        self::free(spl_object_id($this));
    }

    public static function freeAll(): void
    {
        foreach (array_keys(self::$all) as $id) {
            self::free($id);
        }
    }

    private static function free(int $id): void
    {
        [$places, $count, $free] = self::$all[$id] ?? [null, 0, ''];
        unset(self::$all[$id]);
        // The library fills them from the first on.
        for ($i = 0; $i < $count && $places[$i] !== 0; $i++) {
            Ending::freeUnnoted($places[$i], $free);
        }
    }
}
