<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use FFI\CData;

/**
 * Bytes that structs point to; they live as long as this object.
 *
 * @internal
 */
final class Memory
{
    /** @var list<CData> */
    private array $kept = [];

    public function __construct(private readonly Native $native)
    {
    }

    /** Sets a stanchion_text; null leaves it "not given". */
    public function setText(CData $place, ?string $text): void
    {
        if ($text !== null) {
            $copy = $this->copy($text);
            $place->data = $this->native->ffi->cast('char *', $copy);
            $place->len = strlen($text);
        }
    }

    /** Sets the payload of a task. */
    public function setPayload(CData $task, string $payload): void
    {
        $copy = $this->copy($payload);
        $task->payload = $this->native->ffi->cast('char *', $copy);
        $task->payload_len = strlen($payload);
    }

    /** Sets the result of a verdict. */
    public function setResult(CData $verdict, string $result): void
    {
        $copy = $this->copy($result);
        $verdict->result = $this->native->ffi->cast('char *', $copy);
        $verdict->result_len = strlen($result);
    }

    /** @param array<string, string> $headers */
    public function setHeaders(CData $task, array $headers): void
    {
        $array = $this->keep($this->native->makeMany('stanchion_header', count($headers)));
        $index = 0;
        foreach ($headers as $name => $value) {
            $this->setText($array[$index]->name, (string) $name);
            $this->setText($array[$index]->value, $value);
            $index++;
        }
        $task->headers = FFI::addr($array[0]);
        $task->header_count = $index;
    }

    /**
     * An array of stanchion_text.
     *
     * @param list<string> $texts
     */
    public function texts(array $texts): CData
    {
        $array = $this->keep($this->native->makeMany('stanchion_text', count($texts)));
        foreach ($texts as $index => $text) {
            $this->setText($array[$index], $text);
        }
        return $array;
    }

    /**
     * An array of int64_t.
     *
     * @param list<int> $numbers
     */
    public function numbers(array $numbers): CData
    {
        $array = $this->keep($this->native->makeMany('int64_t', count($numbers)));
        foreach ($numbers as $index => $number) {
            $array[$index] = $number;
        }
        return $array;
    }

    private function copy(string $bytes): CData
    {
        $copy = $this->keep($this->native->makeMany('char', strlen($bytes)));
        FFI::memcpy($copy, $bytes, strlen($bytes));
        return $copy;
    }

    private function keep(CData $data): CData
    {
        return $this->kept[] = $data;
    }
}
