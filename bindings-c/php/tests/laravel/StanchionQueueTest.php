<?php

declare(strict_types=1);

namespace Stanchion\Tests\Laravel;

use Illuminate\Container\Container;
use Illuminate\Contracts\Bus\Dispatcher as Bus;
use Illuminate\Contracts\Container\Container as ContainerContract;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Events\Dispatcher;
use Illuminate\Queue\QueueManager;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;
use Stanchion\Client;
use Stanchion\Exception\StaleReceipt;
use Stanchion\Laravel\StanchionConnector;
use Stanchion\Laravel\StanchionQueue;
use Stanchion\Tests\Compat\CompatCase;

require_once __DIR__ . '/../compat/autoload.php';
@include_once 'Illuminate/Queue/autoload.php';

/** Laravel's queue on StanchionQueue. */
final class StanchionQueueTest extends CompatCase
{
    private Container $container;
    private QueueManager $manager;
    private StanchionQueue $queue;

    protected function setUp(): void
    {
        if (!class_exists(QueueManager::class)) {
            self::markTestSkipped('illuminate/queue is missing (Debian: php-illuminate-queue)');
        }
        parent::setUp();
        $connection = ['driver' => 'stanchion', 'url' => $this->server->url(), 'queue' => 'emails'];
        $this->container = new Container();
        $this->container['config'] = ['queue.default' => 'stanchion', 'queue.connections.stanchion' => $connection];
        $this->container->instance(ContainerContract::class, $this->container);
        $this->container->instance(Dispatcher::class, $this->createStub(Dispatcher::class));
        $this->manager = new QueueManager($this->container);
        $this->manager->addConnector('stanchion', fn () => new StanchionConnector());
        $this->queue = $this->manager->connection();
        Greeting::$said = [];
    }

    /** @return list<\Throwable> what was reported */
    private function work(): array
    {
        $reported = [];
        $handler = $this->createStub(ExceptionHandler::class);
        $handler->method('report')->willReturnCallback(function (\Throwable $error) use (&$reported): void {
            $reported[] = $error;
        });
        $bus = $this->createStub(Bus::class);
        $bus->method('dispatchNow')->willReturnCallback(fn (object $job) => $job->handle());
        $this->container->instance(Bus::class, $bus);
        $worker = new Worker($this->manager, $this->createStub(Dispatcher::class), $handler, fn () => false);
        $options = new WorkerOptions(sleep: 0);
        while ($this->queue->size() > 0) {
            $worker->runNextJob('stanchion', 'emails', $options);
        }
        return $reported;
    }

    public function testJobsAreWorkedOn(): void
    {
        $this->queue->push(new Greeting('hello'));
        $this->queue->push(new Greeting('you'));
        self::assertSame(2, $this->queue->size());
        self::assertSame([], $this->work());
        self::assertSame(['hello', 'you'], Greeting::$said);
        self::assertNull($this->queue->pop());
    }

    public function testJobThatFailsIsTriedAgain(): void
    {
        $this->queue->push(new Greeting('hello', failures: 2));
        self::assertCount(2, $this->work());
        self::assertSame(['hello', 'hello', 'hello'], Greeting::$said);
    }

    public function testTriesAreLaravels(): void
    {
        $this->queue->push(new Greeting('hello', failures: 9));
        self::assertCount(3, $this->work());
        self::assertCount(3, Greeting::$said);
    }

    public function testLaterAndNamedQueues(): void
    {
        $id = $this->queue->later(3600, new Greeting('later'));
        $this->queue->pushOn('other', new Greeting('elsewhere'));
        self::assertNull($this->queue->pop());
        $due = Client::connect($this->server->url())->queue('emails')->get($id)?->due;
        self::assertEqualsWithDelta(microtime(true) + 3600, $due, 5.0);
        self::assertSame('other', $this->queue->pop('other')?->getQueue());
    }

    public function testReleasedJobComesBackAfterItsDelay(): void
    {
        $id = $this->queue->pushRaw('{}');
        $this->queue->pop()->release(3600);
        $due = Client::connect($this->server->url())->queue('emails')->get($id)?->due;
        self::assertEqualsWithDelta(microtime(true) + 3600, $due, 5.0);
    }

    public function testJobsTakenAheadAreDeletedTogetherOrGoBack(): void
    {
        $url = $this->server->url();
        $queue = (new StanchionConnector())->connect(['url' => $url, 'queue' => 'emails', 'prefetch' => 3]);
        $queue->setContainer($this->container);
        $tasks = Client::connect($url)->queue('emails');
        $tasks->enqueueMany(['a', 'b', 'c', 'd', 'e']);
        foreach (['a', 'b', 'c'] as $id) {
            $job = $queue->pop();
            self::assertSame($id, $job->getJobId());
            $job->delete();
        }
        self::assertSame([3, 2], [$tasks->stats()->claimed, $tasks->stats()->ready]);
        $job = $queue->pop();
        self::assertSame([2, 0], [$tasks->stats()->claimed, $tasks->stats()->ready]);
        $job->delete();
        unset($job, $queue);
        self::assertSame(['e'], array_map(fn ($task) => $task->id, $tasks->peek(9)));
        self::assertSame([0, 1], [$tasks->get('e')->attempts, $tasks->count()]);
    }

    public function testJobOfAnotherWorkerIsNotDeleted(): void
    {
        $id = $this->queue->pushRaw('{}');
        $job = $this->queue->pop();
        self::assertSame([$id, '{}', 1], [$job->getJobId(), $job->getRawBody(), $job->attempts()]);
        self::assertTrue(Client::connect($this->server->url())->queue('emails')->remove($id));
        $this->expectException(StaleReceipt::class);
        $job->delete();
    }
}
