<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use Stanchion\Exponential;

/**
 * Pauses as the library reads them: JSON, in milliseconds.
 *
 * @internal
 */
final class Backoff
{
    /** @param array<mixed>|Exponential|null $backoff */
    public static function encode(array|Exponential|null $backoff): ?string
    {
        if ($backoff === null) {
            return null;
        }
        $told = $backoff instanceof Exponential ? [
            'base' => Times::needed('backoff', $backoff->base),
            'factor' => self::number($backoff->factor),
            'max' => Times::needed('backoff', $backoff->max),
            'jitter' => self::number($backoff->jitter),
        ] : array_map(fn (mixed $pause): int => Times::needed('backoff', $pause), array_values($backoff));
        return json_encode($told, JSON_THROW_ON_ERROR);
    }

    /** @return list<float>|Exponential|null */
    public static function decode(string $text): array|Exponential|null
    {
        if ($text === '') {
            return null;
        }
        $told = json_decode($text, true, flags: JSON_THROW_ON_ERROR);
        if (array_is_list($told)) {
            return array_map(Times::seconds(...), $told);
        }
        return new Exponential(
            Times::seconds($told['base']),
            $told['factor'],
            Times::seconds($told['max']),
            $told['jitter'],
        );
    }

    private static function number(mixed $number): int|float
    {
        if ((!is_int($number) && !is_float($number)) || !is_finite($number)) {
            throw Errors::argument('backoff', 'a number', $number);
        }
        return $number;
    }
}
