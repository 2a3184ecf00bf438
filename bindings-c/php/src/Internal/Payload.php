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
    /** In bytes. Looked at here, too, since the library looks at a copy. */
    private const MOST = 16 << 20;
    private const FLAGS = JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES
        | JSON_PRESERVE_ZERO_FRACTION;

    /**
     * The bytes, and the headers with the one that says so if they were made JSON.
     *
     * @param array<mixed> $headers
     * @return array{string, array<string, string>}
     */
    public static function encode(mixed $payload, array $headers): array
    {
        foreach ($headers as $name => $value) {
            if (!is_string($value)) {
                throw Errors::invalid("the header $name is a string, not " . get_debug_type($value));
            }
        }
        if (is_string($payload)) {
            return [self::checked($payload), $headers];
        }
        try {
            return [self::checked(json_encode($payload, self::FLAGS)), $headers + ['content-type' => self::JSON]];
        } catch (\JsonException $error) {
            throw Errors::invalid("the payload is neither a string nor a JSON value: {$error->getMessage()}");
        }
    }

    private static function checked(string $payload): string
    {
        if (strlen($payload) > self::MOST) {
            throw Errors::invalid(sprintf('a payload of %d bytes is over %d', strlen($payload), self::MOST));
        }
        return $payload;
    }

    /** @throws \JsonException */
    public static function decode(string $payload): mixed
    {
        return json_decode($payload, true, 512, JSON_THROW_ON_ERROR);
    }
}
