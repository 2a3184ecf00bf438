<?php

// Buyers of the demo's flash sale. Whoever started this says who they are, and where the shop's ledger is.
//
// Arguments and output are the same in every language: core/examples/flash_sale/buyers.rs describes them.

declare(strict_types=1);

use Stanchion\Client;
use Stanchion\Lease;

spl_autoload_register(static function (string $class): void {
    require __DIR__ . '/../src/' . strtr(substr($class, strlen('Stanchion\\')), '\\', '/') . '.php';
});

// Stands for the lock's name in the sale without the lock.
const NO_LOCK = '-';
// How long a buyer waits in line, in seconds.
const PATIENCE = 60;
// How long the bank takes to say yes, in microseconds.
const BANK = 500;

/** Three plain files. It refuses a fence smaller than one that it has seen. */
final class Ledger
{
    /** @var resource */
    private $stock;
    /** @var resource */
    private $fence;
    /** @var resource */
    private $journal;

    public function __construct(private readonly string $folder)
    {
        $this->stock = fopen("$folder/stock", 'r+b');
        $this->fence = fopen("$folder/fence", 'r+b');
        $this->journal = fopen("$folder/journal", 'ab');
        // Others write, too: nothing is to be read from a buffer.
        stream_set_read_buffer($this->stock, 0);
        stream_set_read_buffer($this->fence, 0);
    }

    public function stock(int $fence): int
    {
        $this->admit($fence);
        return $this->read($this->stock);
    }

    public function setStock(int $left, int $fence): void
    {
        $this->admit($fence);
        $this->write($this->stock, $left);
    }

    public function takePayment(int $buyer): void
    {
        usleep(BANK);
        $receipt = fopen("$this->folder/receipt-$buyer", 'wb');
        fwrite($receipt, "buyer $buyer has paid\n");
        fsync($receipt);
    }

    public function note(int $process, int $buyer, int $fence, int $item): void
    {
        $this->admit($fence);
        // One write of a short line at the end of the file: lines never mix.
        fwrite($this->journal, "$process $buyer $fence $item\n");
    }

    private function admit(int $fence): void
    {
        if ($fence === 0) {
            return;
        }
        $seen = $this->read($this->fence);
        if ($fence < $seen) {
            throw new RuntimeException("the ledger refused fence $fence: it has seen $seen");
        }
        if ($fence > $seen) {
            $this->write($this->fence, $fence);
        }
    }

    /** @param resource $file */
    private function read($file): int
    {
        fseek($file, 0);
        return (int) fread($file, 20);
    }

    /** @param resource $file */
    private function write($file, int $number): void
    {
        fseek($file, 0);
        fwrite($file, sprintf('%020d', $number));
    }
}

/** Read, check, pay, write: right only if nobody else does the same meanwhile. */
function sell(Ledger $ledger, int $process, int $buyer, int $fence): void
{
    $left = $ledger->stock($fence);
    if ($left > 0) {
        $ledger->takePayment($buyer);
        $ledger->setStock($left - 1, $fence);
    }
    $ledger->note($process, $buyer, $fence, $left);
}

[, $folder, $name, $process, $processes, $buyers, $atATime] = $argv;
[$process, $processes, $buyers, $atATime] = [(int) $process, (int) $processes, (int) $buyers, (int) $atATime];
$lock = $name === NO_LOCK ? null : Client::connect()->lock($name, wait: PATIENCE);
echo "ready\n";
fgets(STDIN);
// PHP has no threads: each clerk is a process, and the client works in all of them.
$clerks = [];
for ($clerk = 0; $clerk < $atATime; $clerk++) {
    $pid = pcntl_fork();
    if ($pid !== 0) {
        $clerks[] = $pid;
        continue;
    }
    $ledger = new Ledger($folder);
    // Buyers are dealt to the processes like cards, and then to the clerks.
    for ($buyer = $process + $clerk * $processes; $buyer <= $buyers; $buyer += $processes * $atATime) {
        $asked = hrtime(true);
        if ($lock === null) {
            $waited = hrtime(true) - $asked;
            sell($ledger, $process, $buyer, 0);
        } else {
            $waited = $lock->hold(static function (Lease $lease) use ($asked, $ledger, $process, $buyer): int {
                $waited = hrtime(true) - $asked;
                sell($ledger, $process, $buyer, $lease->fence());
                return $waited;
            });
        }
        // One write: lines never mix.
        fwrite(STDOUT, intdiv($waited, 1000) . "\n");
    }
    exit(0);
}
$failed = 0;
foreach ($clerks as $pid) {
    pcntl_waitpid($pid, $status);
    $failed |= $status;
}
exit($failed === 0 ? 0 : 1);
