<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use FFI\CData;
use FFI\CType;
use Stanchion\Exception\StanchionException;

/**
 * The loaded library, and what every call of it needs. There is one for each request.
 *
 * Out-parameters are made anew for each call, since a signal handler may call the library in between. No call stands
 * among the arguments of one of FFI: PHP (8.2, at least) crashes if a handler throws just there.
 *
 * @internal
 */
final class Native
{
    private static ?self $instance = null;
    private static int $calls = 0;

    /** @var array<string, CType> */
    private array $types = [];
    /** @var array<string, array<int, CType>> by their items and lengths */
    private array $arrayTypes = [];

    private function __construct(public readonly FFI $ffi)
    {
    }

    public static function get(): self
    {
        self::$calls++;
        return self::$instance ??= self::begin(new self(Library::load()));
    }

    /** Is another number after anything was asked of the library. */
    public static function calls(): int
    {
        return self::$calls;
    }

    /** A request under FPM finds what the one before left, if that had no memory for its end, or was not let to it. */
    private static function begin(self $native): self
    {
        if (PHP_SAPI === 'fpm-fcgi') {
            $native->ffi->stanchion_free_all();
        }
        return $native;
    }

    /** A new zeroed value of a C type. */
    public function make(string $type): CData
    {
        $this->types[$type] ??= $this->ffi->type($type);
        return $this->ffi->new($this->types[$type]);
    }

    /**
     * A new zeroed array of a C type, of so many items or up to twice as many: the next power of two. PHP's FFI keeps
     * something for each array type for ever, so there are few of these.
     */
    public function makeMany(string $type, int $count): CData
    {
        $length = 1;
        while ($length < $count) {
            $length *= 2;
        }
        $many = $this->arrayTypes[$type][$length] ??= $this->arrayType($type, $length);
        return $this->ffi->new($many);
    }

    private function arrayType(string $type, int $length): CType
    {
        $this->types[$type] ??= $this->ffi->type($type);
        return FFI::arrayType($this->types[$type], [$length]);
    }

    /** A new struct for the library to fill in. */
    public function record(string $type): CData
    {
        $record = $this->make($type);
        $record->struct_size = FFI::sizeof($record);
        return $record;
    }

    /** A new struct with the library's defaults; `$init` is the function for that. */
    public function defaults(string $type, string $init): CData
    {
        $record = $this->make($type);
        $this->init($record, $init);
        return $record;
    }

    /** Has a struct be filled with the library's defaults. */
    public function init(CData $record, string $init): void
    {
        $address = FFI::addr($record);
        $size = FFI::sizeof($record);
        $this->ffi->$init($address, $size);
    }

    /**
     * Calls a function whose last parameter is for an error; its status, if it is none.
     *
     * The arguments stay out of traces: there are secrets among them, and what is gone when a trace is printed.
     *
     * @throws StanchionException
     */
    public function call(string $function, #[\SensitiveParameter] mixed ...$arguments): int
    {
        $error = $this->make('stanchion_error *');
        $arguments[] = FFI::addr($error);
        $status = $this->ffi->$function(...$arguments);
        if ($status < 0) {
            throw $this->taken($function, $status, $error);
        }
        return $status;
    }

    /** The exception for an error of the library, which is freed. */
    private function taken(string $function, int $status, #[\SensitiveParameter] CData $error): StanchionException
    {
        $message = $this->ffi->stanchion_error_message($error);
        $retryable = $this->ffi->stanchion_error_is_retryable($error) === 1;
        $operation = $this->ffi->stanchion_error_operation($error) ?: null;
        $name = $this->ffi->stanchion_error_name($error) ?: null;
        $this->ffi->stanchion_error_free($error);
        // A refused argument, of a function that the program does not know.
        if (str_starts_with($message, "$function: ")) {
            return Errors::invalid(substr($message, strlen("$function: ")), $status);
        }
        return Errors::of($status, $message, $retryable, $operation, $name);
    }

    /**
     * What is made of every record of a list, which is freed; `$what` is one of them, as the library names it.
     *
     * @template T
     * @param callable(CData): T $fromNative
     * @return list<T>
     */
    public function listed(string $what, int $list, callable $fromNative): array
    {
        try {
            $found = [];
            for ($i = 0, $count = $this->ffi->{"stanchion_{$what}s_len"}($list); $i < $count; $i++) {
                $record = $this->record("stanchion_$what");
                $this->call("stanchion_{$what}s_at", $list, $i, FFI::addr($record));
                $found[] = $fromNative($record);
            }
            return $found;
        } finally {
            $this->ffi->{"stanchion_{$what}s_free"}($list);
        }
    }

    /** What a stanchion_text shows, copied. */
    public function text(CData $text): string
    {
        return $text->len === 0 ? '' : FFI::string($text->data, $text->len);
    }

    /** As text(); null if it is "not given". */
    public function maybeText(CData $text): ?string
    {
        return $text->data === null ? null : $this->text($text);
    }

    /**
     * An array of stanchion_text, copied.
     *
     * @return list<string>
     */
    public function texts(?CData $texts, int $count): array
    {
        $copies = [];
        for ($i = 0; $i < $count; $i++) {
            $copies[] = $this->text($texts[$i]);
        }
        return $copies;
    }

    /** Bytes that a struct of the library points to, copied. */
    public function bytes(?CData $data, int $length): string
    {
        if ($length === 0 || $data === null) {
            return '';
        }
        $chars = $this->ffi->cast('char *', $data);
        return FFI::string($chars, $length);
    }

    /**
     * The headers of a task, copied.
     *
     * @return array<string, string>
     */
    public function headers(CData $record): array
    {
        $headers = [];
        for ($i = 0; $i < $record->header_count; $i++) {
            $headers[$this->text($record->headers[$i]->name)] = $this->text($record->headers[$i]->value);
        }
        return $headers;
    }
}
