<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use FFI\CData;

/**
 * Which dead tasks somebody means, as C has it. It lives as long as this object.
 *
 * @internal
 */
final class DeadTasks
{
    public readonly CData $record;
    private readonly Memory $memory;

    /**
     * @param int|string|array<mixed>|null $ids an integer is a count
     * @param ?array<mixed> $receipts
     */
    public function __construct(
        Native $native,
        int|string|array|null $ids,
        ?int $count,
        ?array $receipts,
        string $reason,
        string $prefix,
        mixed $olderThan,
    ) {
        $age = $olderThan === null ? 0 : Times::span('olderThan', $olderThan);
        $given = count(array_filter([$ids, $count, $receipts], fn ($one) => $one !== null));
        if ($given > 1) {
            throw Errors::invalid('give one of the arguments ids, receipts and count');
        }
        // Nobody is to reach all of them by accident.
        if ($given === 0 && $reason === '' && $prefix === '' && $age === 0) {
            throw Errors::invalid('give ids, receipts, a count, a reason, a prefix or olderThan');
        }
        $this->memory = new Memory($native);
        $this->record = $native->defaults('stanchion_dead_tasks', 'stanchion_dead_tasks_init');
        $this->setWhich($ids, $count, $receipts);
        $this->memory->setText($this->record->reason, $reason);
        $this->memory->setText($this->record->prefix, $prefix);
        $this->record->older_than_ms = $age;
    }

    /**
     * @param int|string|array<mixed>|null $ids
     * @param ?array<mixed> $receipts
     */
    private function setWhich(int|string|array|null $ids, ?int $count, ?array $receipts): void
    {
        if (is_int($ids) || $count !== null) {
            // C would take 0 for all.
            $this->record->count = Arguments::number('count', $count ?? $ids, 1);
        } elseif ($ids !== null) {
            $texts = Arguments::texts('ids', (array) $ids);
            $array = $this->memory->texts($texts);
            $this->record->ids = FFI::addr($array[0]);
            $this->record->id_count = count($texts);
        } elseif ($receipts !== null) {
            $numbers = Arguments::receipts($receipts);
            $array = $this->memory->numbers($numbers);
            $this->record->receipts = FFI::addr($array[0]);
            $this->record->receipt_count = count($numbers);
        }
    }
}
