<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use Stanchion\Exception\LibraryUnavailable;

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
        $file = @tempnam(sys_get_temp_dir(), 'stanchion');
        if ($file === false) {
            throw self::impossible('no temporary file can be written');
        }
        try {
            file_put_contents($file, Declarations::header());
            FFI::load($file);
        } catch (FFI\Exception $error) {
            throw self::impossible($error->getMessage(), $error);
        } finally {
            unlink($file);
        }
    }

    private static function impossible(string $why, ?FFI\Exception $cause = null): LibraryUnavailable
    {
        return Errors::library(
            "the library cannot be preloaded here ($why): php bin/stanchion-ffi > stanchion.h, and set ffi.preload to "
            . 'that file',
            $cause
        );
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
