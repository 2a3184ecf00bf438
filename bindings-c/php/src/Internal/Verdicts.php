<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI\CData;
use Stanchion\Verdict;

/**
 * Verdicts as C has them. They live as long as this object.
 *
 * @internal
 */
final class Verdicts
{
    public readonly CData $array;
    public readonly int $count;
    private readonly Memory $memory;

    /** @param iterable<mixed> $verdicts */
    public function __construct(Native $native, iterable $verdicts)
    {
        $verdicts = is_array($verdicts) ? array_values($verdicts) : iterator_to_array($verdicts, false);
        $this->count = count($verdicts);
        $this->memory = new Memory($native);
        $this->array = $native->makeMany('stanchion_verdict', $this->count);
        foreach ($verdicts as $index => $verdict) {
            if (!$verdict instanceof Verdict) {
                throw Errors::argument('verdicts', 'what acked() and the like return', $verdict);
            }
            $record = $this->array[$index];
            $native->init($record, 'stanchion_verdict_init');
            $record->claim = $verdict->claim->handle();
            $record->kind = $verdict->kind;
            $record->delay_ms = $verdict->delayMillis;
            $this->memory->setText($record->reason, $verdict->reason);
            if ($verdict->result !== null) {
                $this->memory->setResult($record, $verdict->result);
            }
        }
    }
}
