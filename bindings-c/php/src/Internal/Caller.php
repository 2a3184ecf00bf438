<?php

declare(strict_types=1);

namespace Stanchion\Internal;

/**
 * Where the program calls this package: the innermost place that is not the package's own.
 *
 * @internal
 */
final class Caller
{
    /** The package is nowhere so deep in itself. */
    private const DEPTH = 24;

    private function __construct(
        public readonly string $file,
        public readonly int $line,
        /** The method that is called there, and of which class. */
        public readonly string $method,
        private readonly string $class,
        /** The function in which that place is. */
        private readonly string $within,
    ) {
    }

    /** Null if there is none: PHP calls destructors by itself at the end of a script. */
    public static function find(): ?self
    {
        $frames = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS, self::DEPTH);
        $own = dirname(__DIR__) . DIRECTORY_SEPARATOR;
        foreach ($frames as $index => $frame) {
            // Functions of PHP, such as array_map, call from no file.
            if (isset($frame['file']) && !str_starts_with($frame['file'], $own)) {
                $within = $frames[$index + 1] ?? [];
                $name = ($within['class'] ?? '') . '::' . ($within['function'] ?? '');
                return new self($frame['file'], $frame['line'], $frame['function'], $frame['class'] ?? '', $name);
            }
        }
        return null;
    }

    /** What is called, for messages: "acquire()", or "new RedisLock()". */
    public function call(): string
    {
        $class = substr((string) strrchr("\\$this->class", '\\'), 1);
        return $this->method === '__construct' ? "new $class()" : "$this->method()";
    }

    /** Whether both are on one line of one function. */
    public function isAt(self $other): bool
    {
        return [$this->file, $this->line, $this->within] === [$other->file, $other->line, $other->within];
    }
}
