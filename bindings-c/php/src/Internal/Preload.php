<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;

/**
 * Loads the library before the first request.
 *
 * @internal
 */
final class Preload
{
    public static function library(): void
    {
        if (self::isLoaded()) {
            return;
        }
        $file = tempnam(sys_get_temp_dir(), 'stanchion');
        try {
            file_put_contents($file, Declarations::header());
            FFI::load($file);
        } catch (FFI\Exception $error) {
            throw Errors::library(
                "the library cannot be preloaded: {$error->getMessage()}. With opcache.preload_user set, or if it is "
                . 'not found: php bin/stanchion-ffi > stanchion.h, and set ffi.preload to that file',
                $error
            );
        } finally {
            unlink($file);
        }
    }

    /** Whether the setting ffi.preload has done it. */
    private static function isLoaded(): bool
    {
        try {
            FFI::scope(Declarations::SCOPE);
            return true;
        } catch (FFI\Exception) {
            return false;
        }
    }
}
