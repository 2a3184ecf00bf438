<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use Stanchion\Enqueued;
use Stanchion\Exception\StanchionException;

/**
 * What became of several things that were asked for at once. The lists of the library are freed.
 *
 * @internal
 */
final class Answers
{
    /** @return list<Enqueued|StanchionException> */
    public static function ofTasks(Native $native, int $answers): array
    {
        return self::each($native, $answers, static function (int $index) use ($native, $answers): Enqueued {
            $record = $native->record('stanchion_enqueued');
            $native->call('stanchion_answers_at', $answers, $index, FFI::addr($record));
            return Enqueued::fromNative($record);
        });
    }

    /** @return list<?StanchionException> */
    public static function ofVerdicts(Native $native, int $answers): array
    {
        return self::each($native, $answers, static function (int $index) use ($native, $answers): mixed {
            $native->call('stanchion_answers_at', $answers, $index, null);
            return null;
        });
    }

    /** @return list<mixed> */
    private static function each(Native $native, int $answers, \Closure $one): array
    {
        try {
            $results = [];
            for ($i = 0, $count = $native->ffi->stanchion_answers_len($answers); $i < $count; $i++) {
                try {
                    $results[] = $one($i);
                } catch (StanchionException $error) {
                    $results[] = $error;
                }
            }
            return $results;
        } finally {
            $native->ffi->stanchion_answers_free($answers);
        }
    }
}
