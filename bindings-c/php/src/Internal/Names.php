<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use Stanchion\NamePage;

/**
 * Lists of names.
 *
 * @internal
 */
final class Names
{
    public static function page(string $function, int $client, ?int $page): NamePage
    {
        $native = Native::get();
        $names = $native->make('int64_t');
        $next = $native->make('uint64_t');
        $native->call($function, $client, $page ?? 0, FFI::addr($names), FFI::addr($next));
        return new NamePage(self::all($native, $names->cdata), $next->cdata ?: null);
    }

    /**
     * Every name of a stanchion_names, which is freed.
     *
     * @return list<string>
     */
    private static function all(Native $native, int $names): array
    {
        try {
            $found = [];
            $text = $native->make('stanchion_text');
            for ($i = 0, $count = $native->ffi->stanchion_names_len($names); $i < $count; $i++) {
                $native->call('stanchion_names_at', $names, $i, FFI::addr($text));
                $found[] = $native->text($text);
            }
            return $found;
        } finally {
            $native->ffi->stanchion_names_free($names);
        }
    }
}
