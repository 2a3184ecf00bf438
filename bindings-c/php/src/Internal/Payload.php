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
     * The bytes, and the headers with the one that says so if they were made JSON.
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
            return [self::checked(json_encode($payload, self::FLAGS)), $headers + ['content-type' => self::JSON]];
        } catch (\JsonException $error) {
            throw Errors::invalid("argument payload must be a string or a JSON value: {$error->getMessage()}");
        }
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

    /** @throws \JsonException */
    public static function decode(string $payload): mixed
    {
        return json_decode($payload, true, 512, JSON_THROW_ON_ERROR);
    }
}
