<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat\Old;

/** The pattern of a lock for scripts that tries a number of times. */
final class ScriptLock
{
    private string $token = '';

    public function __construct(
        private \Redis $redis,
        private string $name,
        private float $validity = 60,
        private int $retries = 3,
        private float $sleep = 0.2,
    ) {
    }

    public function lock(): bool
    {
        $this->token = bin2hex(random_bytes(8));
        for ($try = 0; $try <= $this->retries; $try++) {
            if ($try > 0) {
                // Fault: sleep() takes whole seconds; half a second is none.
                sleep((int) $this->sleep);
            }
            if ($this->redis->set("Lock:$this->name", $this->token, ['NX', 'PX' => (int) ($this->validity * 1000)])) {
                return true;
            }
        }
        return false;
    }

    public function unlock(): void
    {
        if ($this->redis->get("Lock:$this->name") === $this->token) {
            $this->redis->del("Lock:$this->name");
        }
    }
}
