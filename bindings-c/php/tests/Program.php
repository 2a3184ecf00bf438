<?php

declare(strict_types=1);

namespace Stanchion\Tests;

/** A program of the folder programs, as a process of its own. */
final class Program
{
    /** @var resource */
    private $process;
    /** @var array<int, resource> */
    private array $pipes = [];
    private ?int $status = null;

    /** @param list<string> $settings of php */
    public function __construct(string $name, string $url, array $settings = [], string ...$arguments)
    {
        $words = [PHP_BINARY, ...$settings, __DIR__ . "/programs/$name.php", $url, ...$arguments];
        $this->process = proc_open($words, [['pipe', 'r'], ['pipe', 'w'], ['redirect', 1]], $this->pipes);
    }

    /** The next line that it prints; '' at its end. */
    public function line(): string
    {
        $read = [$this->pipes[1]];
        $none = [];
        if (!stream_select($read, $none, $none, 30)) {
            throw new \RuntimeException('the program says nothing');
        }
        return rtrim((string) fgets($this->pipes[1]), "\n");
    }

    /** Reads lines up to this one. */
    public function expect(string $line): void
    {
        $lines = [];
        while (($found = $this->line()) !== $line) {
            $lines[] = $found;
            if ($found === '' && feof($this->pipes[1])) {
                throw new \RuntimeException("the program ended without \"$line\": " . implode("\n", $lines));
            }
        }
    }

    public function rest(): string
    {
        return stream_get_contents($this->pipes[1]);
    }

    public function tell(string $line): void
    {
        fwrite($this->pipes[0], "$line\n");
    }

    public function signal(int $number): void
    {
        proc_terminate($this->process, $number);
    }

    public function pid(): int
    {
        return proc_get_status($this->process)['pid'];
    }

    /** Its exit code, or minus the signal that ended it. */
    public function wait(): int
    {
        $deadline = microtime(true) + 30;
        while (($status = proc_get_status($this->process))['running']) {
            if (microtime(true) > $deadline) {
                throw new \RuntimeException('the program does not end');
            }
            usleep(2_000);
        }
        return $this->status = $status['signaled'] ? -$status['termsig'] : $status['exitcode'];
    }

    public function __destruct()
    {
        if ($this->status === null) {
            proc_terminate($this->process, SIGKILL);
        }
    }
}
