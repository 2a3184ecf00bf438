<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat;

/** Another PHP process that plays a part of players.php, told by lines what to do and telling by lines what it did. */
final class Player
{
    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes = [];

    public function __construct(string $part, string ...$arguments)
    {
        $command = [PHP_BINARY, '-d', 'ffi.enable=1', __DIR__ . '/players.php', $part, ...$arguments];
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], STDERR], $this->pipes);
        if ($process === false) {
            throw new \RuntimeException('php does not start');
        }
        $this->process = $process;
    }

    public function __destruct()
    {
        if (is_resource($this->process)) {
            $this->kill();
        }
    }

    public function tell(string $line): void
    {
        fwrite($this->pipes[0], "$line\n");
    }

    /** The next line that it says. */
    public function hear(): string
    {
        $ready = [$this->pipes[1]];
        $none = null;
        if (stream_select($ready, $none, $none, 20) !== 1 || ($line = fgets($this->pipes[1])) === false) {
            throw new \RuntimeException('the player says nothing');
        }
        return rtrim($line);
    }

    /** What it said in all, after its end. */
    public function rest(): string
    {
        $said = (string) stream_get_contents($this->pipes[1]);
        proc_close($this->process);
        return $said;
    }

    /** As kill -9 does. */
    public function kill(): void
    {
        proc_terminate($this->process, SIGKILL);
        proc_close($this->process);
    }
}
