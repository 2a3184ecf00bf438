<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Claim;
use Stanchion\Client;
use Stanchion\Enqueued;
use Stanchion\Exception\QueueFull;
use Stanchion\Exception\StaleReceipt;
use Stanchion\Loss;
use Stanchion\OnDuplicate;
use Stanchion\Outcome;
use Stanchion\Task;
use Stanchion\TaskState;
use Stanchion\Testing\Clock;

final class QueueTest extends StoreCase
{
    /** @dataProvider stores */
    public function testATaskAndItsClaim(string $kind): void
    {
        $queue = $this->connect($kind)->queue('emails');
        $payload = random_bytes(2000) . "\0";
        $made = $queue->enqueue('user:42', $payload, priority: 7, maxAttempts: 3, headers: ['a' => 'ü', 'b' => '']);
        self::assertSame(['user:42', Outcome::Added], [$made->id, $made->outcome]);
        self::assertEqualsWithDelta(microtime(true), $made->due, 20.0);
        [$claim] = $queue->claim(max: 10, lease: 20.0, wait: 5.0);
        self::assertSame(['user:42', 'emails', $payload, 7, 1, 3, $made->version], [$claim->id(), $claim->queue(),
            $claim->payload(), $claim->priority(), $claim->attempt(), $claim->maxAttempts(), $claim->version()]);
        self::assertEquals(['a' => 'ü', 'b' => ''], $claim->headers());
        self::assertGreaterThan(0, $claim->receipt());
        self::assertEqualsWithDelta($made->due, $claim->due(), 0.1);
        self::assertTrue($claim->isValid() && $claim->remaining() > 10 && !$claim->waitLost(0));
        $claim->extend(50);
        self::assertGreaterThan(40.0, $claim->remaining());
        $claim->ack();
        $claim->ack();
        self::assertThrows(StaleReceipt::class, $claim->nack(...));
        self::assertCount(0, $queue);
        self::assertSame([], $queue->claim());
    }

    /** @dataProvider stores */
    public function testPayloads(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        foreach ([['a' => [1.0, 'ü/', true]], 5, null, [], 'text', ''] as $payload) {
            $queue->enqueue(null, $payload);
            [$claim] = $queue->claim();
            self::assertSame(is_string($payload) ? [] : ['content-type' => 'application/json'], $claim->headers());
            self::assertSame($payload, is_string($payload) ? $claim->payload() : $claim->json());
            $claim->ack();
        }
    }

    /** @dataProvider stores */
    public function testHowAClaimEnds(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueueMany(['nacked', 'buried', 'back', 'left']);
        [$nacked, $buried, $back, $left] = $queue->claim(4);
        $nacked->nack(delay: 500, reason: 'later');
        $buried->bury('never');
        $back->putBack();
        $info = $queue->get('nacked');
        self::assertSame([TaskState::Scheduled, 1, 'later'], [$info->state, $info->attempts, $info->reason]);
        self::assertEqualsWithDelta(microtime(true) + 500, $info->due, 60);
        self::assertSame([TaskState::Dead, 'never'], [$queue->get('buried')->state, $queue->get('buried')->reason]);
        self::assertNotNull($queue->get('buried')->died);
        self::assertSame([TaskState::Ready, 0], [$queue->get('back')->state, $queue->get('back')->attempts]);
        unset($left);
        self::until(fn () => $queue->get('left')->state === TaskState::Scheduled, 'tried again');
        self::assertSame(1, $queue->kick('buried'));
        $queue->claim(2)[1]->bury();
        self::assertSame(1, $queue->kick(10));
        self::assertSame(0, $queue->kick(['buried', 'nobody']));
    }

    /** @dataProvider stores */
    public function testTheDead(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $bury = function (string $id, string $reason) use ($queue): int {
            $queue->enqueue($id);
            [$claim] = $queue->claim();
            $claim->bury($reason);
            return $claim->receipt();
        };
        $first = $bury('a', 'timeout: 5 s');
        self::assertSame($first, $queue->get('a')->receipt);
        $bury('a', 'timeout: 9 s');
        $bury('b', 'refused');
        // The older one of two with the same id.
        self::assertSame(1, $queue->removeDead(receipts: [$first, $first + 1000]));
        self::assertSame('timeout: 9 s', $queue->get('a')->reason);
        self::assertSame(0, $queue->removeDead(reason: 'timeout', olderThan: 3600));
        self::assertSame(1, $queue->removeDead(reason: 'timeout'));
        self::assertSame(1, $queue->kick(prefix: 'b'));
        self::assertSame([0, 1], [$queue->stats()->dead, $queue->stats()->ready]);
    }

    /** @dataProvider stores */
    public function testPages(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        foreach (['user:1', 'user:2', 'user:3', 'other'] as $id) {
            $queue->enqueue($id, 'hello', headers: ['name' => 'value']);
        }
        [$seen, $next] = [[], null];
        do {
            $page = $queue->list(TaskState::Ready, $next, 2, 'user:', payloads: false);
            foreach ($page as $task) {
                $seen[] = $task->id;
                self::assertSame(['', []], [$task->payload, $task->headers]);
                self::assertGreaterThanOrEqual(14, $task->size);
            }
        } while (($next = $page->next) !== null);
        self::assertSame(['user:1', 'user:2', 'user:3'], $seen);
        self::assertSame('hello', $queue->list(TaskState::Ready)->tasks[0]->payload);
    }

    /** @dataProvider stores */
    public function testDuplicates(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $put = fn (?OnDuplicate $policy, string $payload = '') =>
            $queue->enqueue('id', $payload, delay: 100, onDuplicate: $policy)->outcome;
        self::assertSame(Outcome::Added, $put(null, 'first'));
        self::assertSame(Outcome::Kept, $put(OnDuplicate::keep(), 'second'));
        self::assertSame('first', $queue->get('id')->payload);
        self::assertSame(Outcome::Replaced, $put(OnDuplicate::replace(), 'third'));
        self::assertSame(Outcome::Replaced, $put(OnDuplicate::debounce(200), 'fourth'));
        self::assertSame('fourth', $queue->get('id')->payload);
        $throttled = OnDuplicate::throttle(100);
        self::assertSame(Outcome::Added, $queue->enqueue('other', onDuplicate: $throttled)->outcome);
        $refused = $queue->enqueue('other', onDuplicate: $throttled);
        self::assertSame([Outcome::Throttled, 0, null], [$refused->outcome, $refused->version, $refused->due]);
        $claims = $queue->claim();
        self::assertSame(Outcome::Successor, $queue->enqueue('other')->outcome);
        $claims[0]->ack();
        self::assertSame('other', $queue->claim(wait: 5)[0]->id());
    }

    /** @dataProvider stores */
    public function testMany(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->configure(maxLen: 4);
        $results = $queue->enqueueMany([
            'a', ['b', 'payload'], ['id' => 'c', 'delay' => 100], new Task('d', priority: 9), 'too much', 'a']);
        self::assertInstanceOf(QueueFull::class, $results[4]);
        self::assertInstanceOf(Enqueued::class, $results[3]);
        self::assertSame(Outcome::Kept, $results[5]->outcome);
        self::assertThrows(QueueFull::class, fn () => $queue->enqueue('too much'));
        self::assertSame(['d', 'a', 'b'], array_map(fn ($task) => $task->id, $queue->peek(10)));
        $claims = $queue->claim(10);
        self::assertSame(['d', 'a', 'b'], array_map(fn (Claim $claim) => $claim->id(), $claims));
        $claims[2]->ack();
        self::assertEquals([null, null], $queue->settle([$claims[0]->acked(), $claims[2]->acked()]));
        [$errors, $none] = $queue->settleAndClaim([$claims[1]->buried('x'), $claims[2]->nacked()], max: 2);
        self::assertNull($errors[0]);
        self::assertInstanceOf(StaleReceipt::class, $errors[1]);
        self::assertSame([], $none);
        $queue->configure(maxLen: false, deadMax: 5, deadAge: 60.0, deadBytes: 1000, intake: false);
        $stats = $queue->stats();
        self::assertSame([1, 0, 0, 1, null, 5, 60.0, 1000], [$stats->scheduled, $stats->ready, $stats->claimed,
            $stats->dead, $stats->maxLen, $stats->deadMax, $stats->deadAge, $stats->deadBytes]);
        self::assertEqualsWithDelta(100, $stats->nextDue, 30);
        self::assertSame(2, $queue->purge());
        self::assertSame([], $queue->enqueueMany([]));
    }

    /** @dataProvider stores */
    public function testLooksAndChanges(string $kind): void
    {
        $client = $this->connect($kind);
        $queue = $client->queue('q');
        foreach (range(1, 5) as $number) {
            $version = $queue->enqueue("t$number", delay: 100 * $number, expires: 5000)->version;
        }
        $page = $queue->list(TaskState::Scheduled, max: 2);
        $seen = [];
        do {
            foreach ($page as $task) {
                $seen[] = $task->id;
            }
        } while ($page->next !== null && $page = $queue->list(TaskState::Scheduled, $page->next, 2));
        sort($seen);
        self::assertSame(['t1', 't2', 't3', 't4', 't5'], array_values(array_unique($seen)));
        self::assertFalse($queue->remove('t5', 1, $other));
        self::assertSame($version, $other);
        self::assertTrue($queue->remove('t5', $version, $other));
        self::assertNull($other);
        self::assertFalse($queue->remove('t5'));
        self::assertNull($queue->get('t5'));
        self::assertTrue($queue->reschedule('t4', new \DateTimeImmutable('-1 second')));
        $popped = $queue->pop(10);
        self::assertSame(['t4', ''], [$popped[0]->id, $popped[0]->payload]);
        self::assertTrue($queue->reschedule('t3', microtime(true) - 1));
        $claims = $queue->claim();
        self::assertFalse($queue->reschedule('t3', microtime(true), $state));
        self::assertSame(TaskState::Claimed, $state);
        self::assertTrue($queue->remove('t3'));
        self::assertThrows(StaleReceipt::class, $claims[0]->ack(...));
        self::assertFalse($queue->reschedule('t3', microtime(true), $state));
        self::assertNull($state);
        $queue->pause();
        self::assertTrue($queue->stats()->paused);
        $queue->reschedule('t2', 0);
        self::assertSame([], $queue->claim());
        $queue->resume();
        self::assertSame('t2', $queue->claim(wait: 5)[0]->id());
        self::assertSame(['q'], $client->queueNames()->names);
    }

    /** @dataProvider stores */
    public function testWhoClaimedATask(string $kind): void
    {
        $queue = Client::connect($this->url($kind), label: 'importer')->queue('q');
        $queue->enqueue('a');
        self::assertNull($queue->get('a')->claimedBy);
        [$claim] = $queue->claim();
        $by = $queue->get('a')->claimedBy;
        self::assertSame(['importer', gethostname(), getmypid()], [$by->label, $by->host, $by->pid]);
        self::assertEqualsWithDelta(microtime(true), $by->since, 20.0);
        $claim->nack(delay: 500);
        self::assertSame(['importer', null], [($by = $queue->get('a')->claimedBy)->label, $by->since]);
    }

    /** @dataProvider stores */
    public function testConsumersHaveClaims(string $kind): void
    {
        $queue = Client::connect($this->url($kind), label: 'importer')->queue('q');
        self::assertSame([], $queue->consumers());
        $queue->enqueueMany(['a', 'b', 'c']);
        $claims = $queue->claim(2);
        [$one] = $queue->consumers();
        self::assertSame(['importer', gethostname(), getmypid()], [$one->label, $one->host, $one->pid]);
        self::assertSame([0, 2, 0], [$one->waiters, $one->claims, $queue->stats()->waiters]);
        $queue->settle(array_map(fn (Claim $claim) => $claim->acked(), $claims));
        self::assertSame([], $queue->consumers());
    }

    /** @dataProvider sharedStores */
    public function testConsumersWait(string $kind): void
    {
        $url = $this->url($kind);
        $queue = Client::connect($url)->queue('q');
        $program = new Program('worker', $url);
        self::until(fn () => $queue->stats()->waiters === 1, 'it waits', 30);
        [$one] = $queue->consumers();
        self::assertSame(['', $program->pid(), 1, 0], [$one->label, $one->pid, $one->waiters, $one->claims]);
        $queue->enqueue('slow');
        $program->expect('slow');
        [$one] = $queue->consumers();
        self::assertSame([$program->pid(), 1], [$one->pid, $one->claims]);
        self::assertSame($program->pid(), $queue->get('slow')->claimedBy->pid);
    }

    /** @dataProvider stores */
    public function testSeveralQueues(string $kind): void
    {
        $client = $this->connect($kind);
        $client->queue('low')->enqueue('l');
        $client->queue('high')->enqueue('h');
        $queues = $client->queues(['high', 'low']);
        self::assertSame(['high', 'h'], [($claim = $queues->claim()[0])->queue(), $claim->id()]);
        self::assertSame('low', ($other = $queues->claim(5, wait: 1)[0])->queue());
        self::assertSame([], $queues->claim(wait: 0.01));
        $claim->ack();
        $other->ack();
    }

    public function testADeliveryThatIsNotTheLast(): void
    {
        $clock = new Clock();
        $queue = Client::connect('memory:', clock: $clock)->queue('q');
        $queue->enqueue('id', delay: 10);
        self::assertSame([], $queue->claim());
        $clock->advance(10);
        [$first] = $queue->claim(lease: 30);
        $clock->advance(31);
        self::assertSame(Loss::Expired, $first->loss());
        // The task comes back after the pause of a failed attempt.
        $clock->advance(100);
        [$second] = $queue->claim();
        self::assertSame(2, $second->attempt());
        self::assertGreaterThan($first->receipt(), $second->receipt());
        self::assertThrows(StaleReceipt::class, $first->ack(...));
        $second->ack();
    }

    public function testTheIntake(): void
    {
        $url = $this->url('redis:');
        if (!extension_loaded('redis')) {
            self::markTestSkipped('the extension redis is missing');
        }
        $redis = new \Redis();
        $redis->connect(parse_url($url, PHP_URL_HOST), parse_url($url, PHP_URL_PORT));
        parse_str(parse_url($url, PHP_URL_QUERY), $parameters);
        $redis->zAdd("$parameters[queue_prefix]old", microtime(true) - 1, 'from outside');
        self::assertSame('from outside', Client::connect($url)->queue('old')->claim()[0]->id());
    }
}
