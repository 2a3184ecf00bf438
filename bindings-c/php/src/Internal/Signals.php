<?php

declare(strict_types=1);

namespace Stanchion\Internal;

/**
 * Signals that are caught for a while, with the extension pcntl.
 *
 * @internal
 */
final class Signals
{
    /** @param array<int, callable|int> $before what was done at these signals */
    private function __construct(private array $before, private readonly bool $wasAsync)
    {
    }

    /** Calls the functions at the first SIGTERM or SIGINT and at the next ones; another one does what it did before. */
    public static function catch(\Closure ...$functions): ?self
    {
        if (!function_exists('pcntl_signal') || !function_exists('pcntl_async_signals')) {
            return null;
        }
        $before = [];
        foreach ([SIGTERM, SIGINT] as $number) {
            $before[$number] = pcntl_signal_get_handler($number);
        }
        $caught = new self($before, pcntl_async_signals(true));
        foreach (array_keys($before) as $number) {
            pcntl_signal($number, static function () use ($caught, &$functions): void {
                $function = array_shift($functions);
                if ($functions === []) {
                    $caught->restore();
                }
                if ($function !== null) {
                    $function();
                }
            });
        }
        return $caught;
    }

    public function restore(): void
    {
        foreach ($this->before as $number => $handler) {
            pcntl_signal($number, $handler);
        }
        if ($this->before !== [] && !$this->wasAsync) {
            pcntl_async_signals(false);
        }
        $this->before = [];
    }
}
