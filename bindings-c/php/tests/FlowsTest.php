<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Claim;
use Stanchion\Exception\InvalidArgument;
use Stanchion\Flow;
use Stanchion\FlowState;
use Stanchion\NodeInfo;
use Stanchion\NodeState;
use Stanchion\Task;

/** Flows, as the package has them. What they do is in the scenarios. */
final class FlowsTest extends StoreCase
{
    /** @dataProvider stores */
    public function testAFlowGoesToItsEnd(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $nodes = [
            'a',
            new Task('b', maxAttempts: 1),
            ['join', ['of' => 'both'], 'after' => 'a', 'afterEnd' => ['b']],
            ['id' => 'alarm', 'afterFailure' => ['b']],
            ['id' => 'last', 'afterAll' => 'finally'],
        ];
        self::assertTrue($queue->enqueueFlow('f', $nodes));
        self::assertFalse($queue->enqueueFlow('f', ['a']));
        $seen = [];
        $queue->work(function (Claim $claim) use (&$seen): void {
            $inputs = [];
            foreach ($claim->inputs() as $input) {
                $inputs[] = [$input->node, $input->state, $input->json()];
            }
            $seen[$claim->id()] = [$claim->flow(), $inputs];
            match ($claim->id()) {
                'f/a' => $claim->ack('{"rows":3}'),
                'f/b' => $claim->bury('no'),
                default => null,
            };
        }, untilEmpty: true);
        self::assertSame([['a', NodeState::Done, ['rows' => 3]], ['b', NodeState::Dead, null]], $seen['f/join'][1]);
        self::assertSame([['b', NodeState::Dead, null]], $seen['f/alarm'][1]);
        self::assertSame(['f', []], $seen['f/a']);
        self::assertSame('f/last', array_key_last($seen));
        $flow = $queue->getFlow('f');
        self::assertSame(['f', FlowState::Failed, ['done' => 4, 'dead' => 1]], [$flow->id, $flow->state, $flow->counts]);
        self::assertTrue($flow->ended >= $flow->created && $flow->created > 1.7e9);
    }

    /** @dataProvider stores */
    public function testNodesAreShownAsTheyWerePut(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueueFlow('f', [
            ['id' => 'a', 'queue' => null, 'after' => []],
            ['id' => 'b', 'queue' => 'mails', 'after' => 'a', 'afterEnd' => 'a', 'afterFailure' => 'a'],
            ['id' => 'c', 'afterAll' => 'then'],
        ]);
        $flow = $queue->getFlow('f');
        [$a, $b, $c] = $flow->nodes;
        self::assertSame([FlowState::Running, null, ['waiting' => 2, 'put' => 1]], [$flow->state, $flow->ended, $flow->counts]);
        self::assertSame(['a', NodeState::Put, null, null], [$a->name, $a->state, $a->queue, $a->afterAll]);
        self::assertSame([[], [], []], [$a->after, $a->afterEnd, $a->afterFailure]);
        self::assertSame(['mails', ['a'], ['a'], ['a']], [$b->queue, $b->after, $b->afterEnd, $b->afterFailure]);
        self::assertSame([NodeState::Waiting, 'then'], [$c->state, $c->afterAll]);
        self::assertThrows(\Error::class, fn () => $a->state = NodeState::Done, 'readonly');
        self::assertThrows(\Error::class, fn () => $flow->nodes[] = $a, 'readonly');
    }

    /** @dataProvider stores */
    public function testFlowsGrowAndAreCancelledAndTriedAgain(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        self::assertNull($queue->getFlow('f'));
        self::assertFalse($queue->addToFlow('f', ['b']) || $queue->cancelFlow('f') || $queue->retryFlow('f'));
        $queue->enqueueFlow('f', ['a']);
        self::assertTrue($queue->addToFlow('f', (fn () => yield ['id' => 'b', 'after' => 'a'])()));
        self::assertTrue($queue->cancelFlow('f'));
        self::assertSame([], $queue->claim());
        self::assertFalse($queue->cancelFlow('f'));
        self::assertSame([FlowState::Cancelled, 2], [$queue->getFlow('f')->state, $queue->getFlow('f')->counts['cancelled']]);
        self::assertTrue($queue->retryFlow('f'));
        self::assertSame('f/a', $queue->pop()[0]->id);
    }

    /** @dataProvider stores */
    public function testFlowsComePageByPage(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        self::assertCount(0, $queue->listFlows());
        $queue->enqueueFlow('a', ['x']);
        $queue->enqueueFlow('b', ['x']);
        $page = $queue->listFlows(max: 1);
        self::assertSame([1, [], ['put' => 1]], [count($page), $page->flows[0]->nodes, $page->flows[0]->counts]);
        $found = [];
        for (; $page !== null; $page = $page->next === null ? null : $queue->listFlows($page->next, 1)) {
            foreach ($page as $flow) {
                $found[] = $flow->id;
            }
        }
        self::assertEqualsCanonicalizing(['a', 'b'], $found);
    }

    public function testAChain(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $chain = Flow::chain(['a', ['b', 'payload', 'queue' => 'mails'], new Task('c'), ['id' => 'd', 'after' => 'a']]);
        $queue->enqueueFlow('f', [...$chain, ['id' => 'alarm', 'afterAll' => 'failed']]);
        $after = array_map(fn (NodeInfo $node) => [$node->name, $node->after], $queue->getFlow('f')->nodes);
        self::assertSame([['a', []], ['b', ['a']], ['c', ['b']], ['d', ['a', 'c']], ['alarm', []]], $after);
        self::assertSame([], Flow::chain([]));
        foreach ([new Task(), ['payload' => 5], [], ['id' => 5], 5] as $nameless) {
            self::assertThrows(InvalidArgument::class, fn () => Flow::chain(['a', $nameless]), 'chain(): argument');
        }
    }

    public function testAnEmptyResultIsOne(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $queue->enqueueFlow('f', Flow::chain(['a', 'b', 'c']));
        $queue->claim()[0]->ack('');
        $claim = $queue->claim()[0];
        self::assertSame('', $claim->inputs()[0]->result);
        $claim->ack();
        $claim = $queue->claim()[0];
        self::assertNull($claim->inputs()[0]->result);
        $claim->ack();
        $queue->enqueue('alone');
        $alone = $queue->claim()[0];
        self::assertSame([null, []], [$alone->flow(), $alone->inputs()]);
        $alone->ack();
    }

    public function testWhatIsNoFlowIsRefused(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $bad = [
            'enqueueFlow(): argument nodes must be Tasks, ids or arrays' => [5, null, new \stdClass()],
            'makes no task' => [['id' => 'x', 'no' => 'such'], ['id' => 5], ['id' => 'x', 'headers' => 5]],
            'argument queue must be a string' => [['id' => 'x', 'queue' => 5], ['id' => 'x', 'queue' => ['q']]],
            'argument after must be' => [['id' => 'x', 'after' => 5], ['id' => 'x', 'after' => [5]], ['id' => 'x', 'after' => [null]]],
            'argument afterEnd must be' => [['id' => 'x', 'afterEnd' => true], ['id' => 'x', 'afterEnd' => [['a']]]],
            'argument afterFailure must be' => [['id' => 'x', 'afterFailure' => new \stdClass()]],
            'argument afterAll must be then, failed or finally' => [
                ['id' => 'x', 'afterAll' => 'success'], ['id' => 'x', 'afterAll' => 1], ['id' => 'x', 'afterAll' => true],
                ['id' => 'x', 'afterAll' => ''],
            ],
            '' => [
                ['id' => 'x', 'maxAttempts' => 0], ['id' => 'x', 'queue' => '{'], ['id' => 'x', 'after' => 'none'], 'a',
                ['id' => 'x', 'after' => 'x'], ['id' => 'x', 'queue' => ''], ['id' => 'x', 'after' => "\xff"],
            ],
        ];
        foreach ($bad as $why => $nodes) {
            foreach ($nodes as $node) {
                self::assertThrows(InvalidArgument::class, fn () => $queue->enqueueFlow('f', ['a', $node]), $why);
            }
        }
        self::assertNull($queue->getFlow('f'));
        self::assertThrows(InvalidArgument::class, fn () => $queue->enqueueFlow('', ['a']));
        self::assertThrows(InvalidArgument::class, fn () => $queue->listFlows(max: 0));
        self::assertThrows(InvalidArgument::class, fn () => $queue->listFlows('none of ours'));
        $queue->enqueueFlow('f', ['a']);
        $added = fn () => $queue->addToFlow('f', [['id' => 'b', 'afterAll' => 'then']]);
        self::assertThrows(InvalidArgument::class, $added, 'argument afterAll is then: nodes that wait for all come with the flow');
        self::assertCount(1, $queue->getFlow('f')->nodes);
    }
}
