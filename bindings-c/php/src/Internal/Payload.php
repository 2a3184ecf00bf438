<?php

declare(strict_types=1);

namespace Stanchion\Internal;

/**
 * Payloads: strings are bytes, everything else is stored as JSON.
 *
 * @internal
 */
final class Payload
{
    private const JSON = 'application/json';
    private const FLAGS = JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES
        | JSON_PRESERVE_ZERO_FRACTION;

    /**
     * The bytes, and the headers: with content-type if they were made JSON.
     *
     * @param array<mixed> $headers
     * @return array{string, array<string, string>}
     */
    public static function encode(mixed $payload, array $headers): array
    {
        foreach ($headers as $name => $value) {
            if (!is_string($value)) {
                throw Errors::argument("headers[$name]", 'a string', $value);
            }
        }
        if (is_string($payload)) {
            return [self::checked($payload), $headers];
        }
        try {
            return [self::checked(self::json($payload)), $headers + ['content-type' => self::JSON]];
        } catch (\JsonException $error) {
            throw Errors::invalid("argument payload must be a string or a JSON value: {$error->getMessage()}");
        }
    }

    /**
     * A value as JSON; one of which JSON would lose a part is refused.
     *
     * @throws \JsonException
     */
    public static function json(mixed $value): string
    {
        $json = json_encode($value, self::FLAGS);
        // What is lost leaves that; most values have none, and need no look.
        $lost = str_contains($json, '{}') ? self::lost($value) : null;
        if ($lost !== null) {
            throw new \JsonException('JSON would keep nothing of a ' . get_debug_type($lost));
        }
        return $json;
    }

    /** The first object within a value that becomes an empty one, and was not meant as one. */
    private static function lost(mixed $value): ?object
    {
        if (is_object($value)) {
            if ($value instanceof \JsonSerializable || $value instanceof \UnitEnum) {
                return null;
            }
            // As an array, a closure is a list of itself.
            $public = $value instanceof \Closure ? [] : self::publicOf($value);
            $isArray = $value instanceof \ArrayObject || $value instanceof \ArrayIterator;
            $isPlain = $isArray || $value instanceof \stdClass;
            if ($public === [] && !$isPlain) {
                return $value;
            }
            $value = $public;
        }
        foreach (is_array($value) ? $value : [] as $part) {
            $lost = self::lost($part);
            if ($lost !== null) {
                return $lost;
            }
        }
        return null;
    }

    /**
     * What JSON shows of an object. Of a date that is more than its properties.
     *
     * @return array<mixed>
     */
    private static function publicOf(object $object): array
    {
        return array_filter((array) $object, fn ($name) => !str_starts_with("$name", "\0"), ARRAY_FILTER_USE_KEY);
    }

    private static function checked(string $payload): string
    {
        // Here, too, since the library looks at a copy.
        $most = Native::get()->ffi->STANCHION_MAX_PAYLOAD;
        if (strlen($payload) > $most) {
            throw Errors::argument('payload', "at most $most bytes long", $payload);
        }
        return $payload;
    }

    /**
     * What is no JSON object is told in words that follow "is".
     *
     * @return array<mixed>
     * @throws \JsonException
     */
    public static function decodeObject(string $payload): array
    {
        try {
            $value = self::decode($payload);
        } catch (\JsonException $error) {
            throw new \JsonException("no JSON: {$error->getMessage()}", $error->getCode(), $error);
        }
        // A list and an object are both arrays.
        if (!str_starts_with(ltrim($payload), '{')) {
            throw new \JsonException('no JSON object: it is ' . (is_array($value) ? 'a list' : get_debug_type($value)));
        }
        return $value;
    }

    /** @throws \JsonException */
    public static function decode(string $payload): mixed
    {
        return json_decode($payload, true, 512, JSON_THROW_ON_ERROR);
    }
}
