<?php

declare(strict_types=1);

namespace Stanchion;

/** How a lock is held. */
enum HeldAs: string
{
    /** In a way that this package does not know. */
    case Other = 'other';
    /** By a lease of Stanchion. */
    case Lease = 'lease';
    /** Offered to a waiter that has not confirmed yet. */
    case Offer = 'offer';
    /** By nobody: closed for a time after a release with cooldown. */
    case Cooldown = 'cooldown';
    /** By a value that another program wrote. */
    case Foreign = 'foreign';

    /** @internal */
    public static function fromNative(int $number): self
    {
        return self::cases()[$number] ?? self::Other;
    }
}
