<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use FFI\CData;
use Stanchion\Client;

/**
 * Which lock an object stands for, and the functions of C for it.
 *
 * @internal
 */
final class Named
{
    /** @param ?list<string> $several */
    private function __construct(
        public readonly string $name,
        /** What the name of the function that acquires it begins with. */
        private readonly string $acquiring,
        /** And of those that look at it, or break it. */
        private readonly string $looking,
        private readonly ?int $permits = null,
        private readonly ?array $several = null,
    ) {
    }

    public static function exclusive(string $name): self
    {
        return new self($name, 'stanchion_lock', 'stanchion_lock');
    }

    public static function reader(string $name): self
    {
        return new self($name, 'stanchion_read_lock', 'stanchion_rw_lock');
    }

    public static function writer(string $name): self
    {
        return new self($name, 'stanchion_write_lock', 'stanchion_rw_lock');
    }

    public static function semaphore(string $name, int $permits): self
    {
        return new self($name, 'stanchion_semaphore', 'stanchion_semaphore', permits: $permits);
    }

    /** @param list<string> $names */
    public static function several(array $names): self
    {
        // The core takes them in the order of their bytes, and goes by the name of the first.
        $sorted = $names;
        sort($sorted, SORT_STRING);
        return new self($sorted[0] ?? '', 'stanchion_multi_lock', 'stanchion_lock', several: $names);
    }

    /** The status of the function that acquires it. */
    public function acquire(
        Client $client,
        #[\SensitiveParameter] CData $options,
        #[\SensitiveParameter] CData $places,
    ): int {
        $native = Native::get();
        // Kept until the call has returned.
        $memory = new Memory($native);
        $which = $this->several === null
            ? [$this->name, strlen($this->name)]
            : [$memory->texts($this->several), count($this->several)];
        if ($this->permits !== null) {
            $which[] = $this->permits;
        }
        $address = FFI::addr($options);
        return $native->call("{$this->acquiring}_acquire", $client->handle(), ...[...$which, $address, $places]);
    }

    /** The status of a function that looks at it, or breaks it. */
    public function call(string $what, Client $client, #[\SensitiveParameter] mixed ...$arguments): int
    {
        $function = "{$this->looking}_$what";
        return Native::get()->call($function, $client->handle(), $this->name, strlen($this->name), ...$arguments);
    }
}
