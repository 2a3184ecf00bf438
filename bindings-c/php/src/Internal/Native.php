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

    /** @var array<string, CType> */
    private array $types = [];

    private function __construct(public readonly FFI $ffi)
    {
    }

    public static function get(): self
    {
        return self::$instance ??= self::begin(new self(Library::load()));
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

    /** A new array of a C type; of one item at least, since FFI has no empty ones. */
    public function makeMany(string $type, int $count): CData
    {
        $this->types[$type] ??= $this->ffi->type($type);
        $many = FFI::arrayType($this->types[$type], [max(1, $count)]);
        return $this->ffi->new($many);
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
            throw $this->taken($status, $error);
        }
        return $status;
    }

    /** The exception for an error of the library, which is freed. */
    private function taken(int $status, #[\SensitiveParameter] CData $error): StanchionException
    {
        $exception = Errors::of(
            $status,
            $this->ffi->stanchion_error_message($error),
            $this->ffi->stanchion_error_is_retryable($error) === 1,
            $this->ffi->stanchion_error_operation($error) ?: null,
            $this->ffi->stanchion_error_name($error) ?: null,
        );
        $this->ffi->stanchion_error_free($error);
        return $exception;
    }

    /** What a stanchion_text shows, copied. */
    public function text(CData $text): string
    {
        return $text->len === 0 ? '' : FFI::string($text->data, $text->len);
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
