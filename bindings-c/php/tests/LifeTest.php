<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Client;
use Stanchion\Exception\Closed;
use Stanchion\TaskState;

/** How leases and claims end with their process, and what a fork does. */
final class LifeTest extends StoreCase
{
    /** @return array<string, array{string, string, int}> */
    public static function ends(): array
    {
        $ends = [];
        foreach (self::sharedStores() as $name => [$kind]) {
            foreach (['return' => 3, 'throw' => 255, 'memory' => 255] as $how => $code) {
                $ends["$name $how"] = [$kind, $how, $code];
            }
        }
        return $ends;
    }

    /** @dataProvider ends */
    public function testTheEndOfAProgramReleases(string $kind, string $how, int $code): void
    {
        $url = $this->url($kind);
        $client = Client::connect($url);
        $client->queue('q')->enqueue('task');
        $program = new Program('ends', $url);
        $program->expect('held');
        self::assertTrue($client->lock('a')->isLocked());
        $program->tell($how);
        self::assertSame($code, $program->wait(), $program->rest());
        self::assertFalse($client->lock('a')->isLocked());
        self::assertSame(TaskState::Scheduled, $client->queue('q')->get('task')->state);
    }

    /** @dataProvider sharedStores */
    public function testTheEndOfAFunctionReleases(string $kind): void
    {
        $url = $this->url($kind);
        $client = Client::connect($url);
        $client->queue('q')->enqueue('task');
        self::assertSame(-SIGKILL, (new Program('local', $url))->wait());
        self::assertFalse($client->lock('a')->isLocked());
        self::assertSame(TaskState::Scheduled, $client->queue('q')->get('task')->state);
    }

    /** @dataProvider sharedStores */
    public function testWhatIsUsedAfterTheEndIsClosed(string $kind): void
    {
        $url = $this->url($kind);
        $client = Client::connect($url);
        $client->queue('q')->enqueue('task');
        $program = new Program('late', $url);
        self::assertSame(0, $program->wait());
        self::assertSame(str_repeat(Closed::class . " final\n", 4), $program->rest());
        self::assertFalse($client->lock('a')->isLocked());
        self::assertSame(TaskState::Scheduled, $client->queue('q')->get('task')->state);
    }

    /** @dataProvider sharedStores */
    public function testAClosedClientHasGivenEverythingBackAndRefuses(string $kind): void
    {
        $url = $this->url($kind);
        [$client, $other] = [Client::connect($url), Client::connect($url, label: 'other')];
        $client->queue('q')->enqueue('task');
        $lease = $client->lock('a')->acquire();
        $claims = $client->queue('q')->claim();
        self::assertSame(1, $client->close());
        self::assertFalse($lease->isValid());
        self::assertFalse($other->lock('a')->isLocked());
        self::assertSame([TaskState::Ready, 0], [($task = $other->queue('q')->get('task'))->state, $task->attempts]);
        foreach ([$client->lock('a')->acquire(...), $client->queue('q')->stats(...), $claims[0]->ack(...)] as $call) {
            try {
                $call();
                self::fail('it is not refused');
            } catch (Closed $error) {
                self::assertStringContainsString('the client was closed; open another one', $error->getMessage());
            }
        }
        self::assertSame(0, $client->close());
        self::assertNotNull(Client::connect($url)->lock('a')->tryAcquire()?->fence());
    }

    public function testShutdownFunctionsStillHaveTheirLeases(): void
    {
        $program = new Program('ends', $this->url('sqlite:'));
        $program->expect('held');
        $program->tell('late');
        self::assertSame('valid', $program->line());
        self::assertSame(0, $program->wait());
    }

    /** @dataProvider sharedStores */
    public function testAKilledHoldersLeaseExpires(string $kind): void
    {
        $url = $this->url($kind);
        $program = new Program('holder', $url);
        $program->expect('held');
        $lock = Client::connect($url)->lock('a');
        self::assertNull($lock->tryAcquire());
        $program->signal(SIGKILL);
        self::assertSame(-SIGKILL, $program->wait());
        self::assertGreaterThan(0, $lock->acquire(wait: 20)->fence());
    }

    /** @return array<string, array{string, string, string}> */
    public static function interruptions(): array
    {
        $all = [];
        foreach (self::sharedStores() as $name => [$kind]) {
            foreach (['lock', 'claim', 'claims'] as $what) {
                foreach (['throw', 'exit'] as $how) {
                    $all["$name $what $how"] = [$kind, $what, $how];
                }
            }
        }
        return $all;
    }

    /**
     * A handler that throws or exits runs when the call has returned: with a lease or claim that nobody has got yet.
     *
     * @dataProvider interruptions
     */
    public function testWhatASignalHandlerCutsOffIsLetGoOf(string $kind, string $what, string $how): void
    {
        $url = $this->url($kind);
        $client = Client::connect($url);
        $lease = $client->lock('a')->acquire();
        $program = new Program('interrupted', $url, [], $what, $how);
        self::assertSame('waits', $program->line());
        // The signal comes a second from now, what the call waits for a second later.
        $lease->release(cooldown: 2.0);
        $client->queue('q')->enqueue('task', delay: 2.0);
        $how === 'throw' ? self::assertSame('too long', $program->line()) : self::assertSame(7, $program->wait());
        if ($what === 'lock') {
            self::until(fn () => !$client->lock('a')->isLocked(), 'free', 20);
        } else {
            self::until(fn () => $client->queue('q')->get('task')->state === TaskState::Scheduled, 'let go of', 20);
            self::assertSame(1, $client->queue('q')->get('task')->attempts);
        }
    }

    /** @dataProvider sharedStores */
    public function testAForkedChild(string $kind): void
    {
        $program = new Program('fork', $this->url($kind));
        self::assertSame("Forked Forked Forked Forked Forked\nbusy\nworks\nworks\n0\nstill held\nreleased\n", $program->rest());
        self::assertSame(0, $program->wait());
    }

    /** @dataProvider sharedStores */
    public function testManyProcessesCount(string $kind): void
    {
        $url = $this->url($kind);
        $file = tempnam(sys_get_temp_dir(), 'count');
        file_put_contents($file, '0');
        $programs = array_map(fn () => new Program('count', $url, [], $file, '50'), range(1, 4));
        foreach ($programs as $program) {
            self::assertSame(0, $program->wait(), $program->rest());
        }
        self::assertSame('200', file_get_contents($file));
        unlink($file);
    }
}
