<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use Stanchion\Exception\LibraryUnavailable;

/**
 * Finds and loads the native library, on first use.
 *
 * @internal
 */
final class Library
{
    private const SYSTEM = 'libstanchion.so.0';

    public static function load(): FFI
    {
        if (!extension_loaded('ffi')) {
            throw Errors::library(
                "PHP's extension FFI is missing; install it (Debian: php-common has it; Docker: docker-php-ext-install "
                . 'ffi) and load it with extension=ffi'
            );
        }
        $ffi = self::preloaded() ?? self::open();
        self::checkVersion($ffi);
        return $ffi;
    }

    /** Throws if the library that is found now cannot be used. */
    public static function check(): void
    {
        self::checkVersion(self::open());
    }

    /**
     * Where to look for the library, best first: the environment, else what is bundled, else the system.
     *
     * @return non-empty-list<string>
     */
    public static function candidates(): array
    {
        $given = getenv('STANCHION_LIB');
        if ($given !== false && $given !== '') {
            return [$given];
        }
        $bundled = dirname(__DIR__, 2) . '/lib/' . self::platform() . '/libstanchion.so';
        return is_file($bundled) ? [$bundled, self::SYSTEM] : [self::SYSTEM];
    }

    /** What the libraries that come along are sorted by: the system, the processor, and the libc of this process. */
    public static function platform(): string
    {
        $libc = '';
        if (PHP_OS_FAMILY === 'Linux') {
            // Both can be on one machine: musl's loader is in the process that uses it. Where PHP may not look
            // (open_basedir), it is glibc.
            $libc = str_contains((string) @file_get_contents('/proc/self/maps'), '/ld-musl-') ? '-musl' : '-gnu';
        }
        return strtolower(PHP_OS_FAMILY) . '-' . php_uname('m') . $libc;
    }

    private static function preloaded(): ?FFI
    {
        try {
            return FFI::scope(Declarations::SCOPE);
        } catch (FFI\Exception $error) {
            if (str_contains($error->getMessage(), 'restricted')) {
                throw self::restricted($error);
            }
            return null;
        }
    }

    private static function restricted(FFI\Exception $error): LibraryUnavailable
    {
        $setting = (string) ini_get('ffi.enable');
        // What is `false` in php.ini is an empty string.
        $setting = $setting === '' ? 'false' : $setting;
        return Errors::library(
            "PHP's FFI is disabled here (ffi.enable = $setting). Either set ffi.enable = true in php.ini, or "
            . 'ffi.enable = preload with opcache.preload = ' . dirname(__DIR__, 2) . '/preload.php, and, if PHP is '
            . 'started as root, opcache.preload_user and ffi.preload; the README of stanchion/stanchion says how',
            $error
        );
    }

    private static function open(): FFI
    {
        $failures = [];
        foreach (self::candidates() as $file) {
            try {
                return FFI::cdef(Declarations::text(), $file);
            } catch (FFI\Exception $error) {
                if (str_contains($error->getMessage(), 'restricted')) {
                    throw self::restricted($error);
                }
                $failures[] = self::explain($file, $error->getMessage());
            }
        }
        throw Errors::library(
            'the library libstanchion was not found or does not fit: ' . implode('; ', $failures)
            . '. Install it (make -C bindings-c install), or name its file in the environment variable STANCHION_LIB'
        );
    }

    private static function explain(string $file, string $message): string
    {
        if (str_contains($message, 'Failed resolving')) {
            return "$file is of another version than this package ($message)";
        }
        return str_contains($file, '/') && !is_file($file) ? "there is no file $file" : "$file: $message";
    }

    private static function checkVersion(FFI $ffi): void
    {
        $found = $ffi->stanchion_abi_version();
        $expected = $ffi->STANCHION_ABI_VERSION;
        if ($found !== $expected) {
            throw Errors::library(sprintf(
                'libstanchion %s has the interface %d, but this package needs %d: install the library and the '
                . 'package of the same version',
                $ffi->stanchion_version(),
                $found,
                $expected
            ));
        }
    }
}
