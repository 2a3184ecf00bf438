<?php

declare(strict_types=1);

namespace Stanchion\Internal;

/**
 * The C declarations, as PHP's FFI reads them.
 *
 * @internal
 */
final class Declarations
{
    /** The name under which a preloaded library is found. */
    public const SCOPE = 'STANCHION';

    /** For FFI::cdef(). */
    public static function text(): string
    {
        $text = file_get_contents(dirname(__DIR__, 2) . '/stanchion.ffi.h');
        if ($text === false) {
            throw Errors::library('the file stanchion.ffi.h of the package stanchion/stanchion cannot be read');
        }
        // FFI turns a const char * that it reads into a string up to its first NUL. These have lengths instead.
        return str_replace('  const char *data;', '  char *data;', $text);
    }

    /** For FFI::load() and the setting ffi.preload, with the library that is found now. */
    public static function header(): string
    {
        $library = Library::candidates()[0];
        return '#define FFI_SCOPE "' . self::SCOPE . "\"\n#define FFI_LIB \"$library\"\n" . self::text();
    }
}
