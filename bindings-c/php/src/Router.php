<?php

declare(strict_types=1);

namespace Stanchion;

use Stanchion\Internal\Errors;

/**
 * Which object handles which kind of task, for Queue::work() and Queue::worker(). See Handles.
 *
 * A handler gets the payload, a JSON object, as an array, and the claim. What it returns, if not null, becomes the
 * task's result, as JSON; what it throws, or settles itself, is as with any worker. A task of a kind that no handler
 * has is put back for 1 s, then 2 s and so on up to 1 min, until a worker gets it that knows the kind: no attempt
 * counts, and it is told as WorkerEventKind::UnknownKind. One whose payload is no JSON object is dead; so is one whose
 * handler has returned what is no JSON value, since its work is done.
 */
final class Router
{
    /** Longest kind, in bytes. */
    private const MOST = 128;

    /** @var array<callable> by the kind */
    private array $handlers = [];
    private readonly ?\Closure $otherwise;

    /**
     * @param iterable<object> $handlers of classes with the attribute Handles; each kind once
     * @param ?callable(Claim): mixed $otherwise for tasks without a kind, such as those of schedules (they are put
     *     back, as those of unknown kinds)
     */
    public function __construct(iterable $handlers, ?callable $otherwise = null)
    {
        foreach ($handlers as $handler) {
            $this->add($handler);
        }
        if ($this->handlers === []) {
            throw Errors::invalid('argument handlers must be some objects with #[Handles], got none');
        }
        $this->otherwise = $otherwise === null ? null : $otherwise(...);
    }

    /**
     * The kinds that have a handler.
     *
     * @return list<string>
     */
    public function kinds(): array
    {
        // PHP has made integers of some.
        return array_map(strval(...), array_keys($this->handlers));
    }

    /**
     * What handles tasks of this kind; with null, tasks without one.
     *
     * @internal
     */
    public function handler(?string $kind): ?callable
    {
        return $kind === null ? $this->otherwise : $this->handlers[$kind] ?? null;
    }

    private function add(mixed $handler): void
    {
        if (!is_object($handler)) {
            throw Errors::argument('handlers', 'objects with #[Handles]', $handler);
        }
        $class = $handler::class;
        foreach (self::kindsOf($handler) as $kind) {
            if ($kind === '' || strlen($kind) > self::MOST || preg_match('/^\P{Cc}+$/Du', $kind) !== 1) {
                throw Errors::invalid("the kind that $class handles is not 1 to 128 bytes without control characters");
            }
            $other = $this->handlers[$kind] ?? null;
            if ($other !== null) {
                throw Errors::invalid("the kind \"$kind\" is handled by " . $other::class . " and by $class");
            }
            $this->handlers[$kind] = self::checked($handler);
        }
    }

    /** @return non-empty-list<string> */
    private static function kindsOf(object $handler): array
    {
        // Attributes are not inherited, and containers and tests make classes that extend the one that was written.
        for ($class = new \ReflectionClass($handler); $class !== false; $class = $class->getParentClass()) {
            $found = $class->getAttributes(Handles::class);
            if ($found !== []) {
                return array_map(static fn (\ReflectionAttribute $one): string => $one->newInstance()->kind, $found);
            }
        }
        throw Errors::invalid($handler::class . " has no attribute #[Handles('kind')]");
    }

    private static function checked(object $handler): callable
    {
        $class = $handler::class;
        if (!is_callable($handler)) {
            throw Errors::invalid("$class needs a public method __invoke(array \$payload, Claim \$claim)");
        }
        $method = new \ReflectionMethod($handler, '__invoke');
        if ($method->getNumberOfRequiredParameters() > 2) {
            throw Errors::invalid("$class::__invoke() takes more than the payload and the claim");
        }
        if ($method->isGenerator()) {
            throw Errors::invalid("$class::__invoke() is a generator, whose body does not run when it is called");
        }
        return $handler;
    }
}
