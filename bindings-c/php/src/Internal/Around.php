<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use Stanchion\Claim;

/**
 * What stands around the handlers of a worker.
 *
 * @internal
 */
final class Around
{
    /** @var list<callable(Claim, callable(): mixed): mixed> the innermost first */
    private readonly array $functions;

    /** @param callable|iterable<mixed>|null $around the first is outermost */
    public function __construct(callable|iterable|null $around)
    {
        $functions = [];
        // A pair of an object and the name of its method is both; it is meant as a function.
        foreach (is_callable($around) ? [$around] : $around ?? [] as $function) {
            if (!is_callable($function)) {
                throw Errors::argument('around', 'a function, or a list of functions', $function);
            }
            array_unshift($functions, $function);
        }
        $this->functions = $functions;
    }

    /**
     * Calls a handler inside of them.
     *
     * @param \Closure(): mixed $handler
     */
    public function run(Claim $claim, \Closure $handler): mixed
    {
        $next = static fn (): mixed => self::ran($handler());
        foreach ($this->functions as $function) {
            $next = static fn (): mixed => self::ran($function($claim, $next));
        }
        return $next();
    }

    /** Fails the task of what only looked like a plain function: its body has not run. */
    private static function ran(mixed $returned): mixed
    {
        if ($returned instanceof \Generator) {
            throw new \TypeError('the handler is a generator, whose body does not run when it is called');
        }
        return $returned;
    }
}
