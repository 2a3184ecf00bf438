<?php

declare(strict_types=1);

namespace Stanchion;

/** What becomes of a slot of a Schedule while the task of the slot before is pending or running. */
enum Overlap: string
{
    /** It gets its task all the same. */
    case Queue = 'queue';
    /** It gets none. */
    case Skip = 'skip';

    /** @internal */
    public static function fromNative(int $number): ?self
    {
        return self::cases()[$number] ?? null;
    }
}
