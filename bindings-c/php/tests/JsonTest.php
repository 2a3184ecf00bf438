<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Exception\InvalidArgument;

/** Payloads and cached values are stored as JSON; an object of which that would keep nothing is refused. */
final class JsonTest extends StoreCase
{
    /** @return array<string, array{object}> */
    public static function lost(): array
    {
        $storage = new \SplObjectStorage();
        $storage[new \stdClass()] = 1;
        $all = [
            fn () => 1, (fn () => yield 1)(), $storage, new \SplQueue(), \WeakReference::create($storage), new \Exception('x'),
            new Money(5),
        ];
        $names = array_map(fn (object $one) => $one::class, $all);
        return array_combine($names, array_map(fn (object $one) => [$one], $all));
    }

    /** @dataProvider lost */
    public function testWhatJsonWouldLoseIsRefused(object $lost): void
    {
        $client = $this->connect('memory:');
        $queue = $client->queue('q');
        $problem = 'JSON would keep nothing of a ' . $lost::class;
        $public = new \stdClass();
        $public->within = ['deep' => [1, $lost]];
        foreach ([$lost, [$lost], ['a' => ['b' => $lost]], $public, [new \ArrayObject([$lost])]] as $value) {
            $error = self::assertThrows(InvalidArgument::class, fn () => $queue->enqueue('t', $value), $problem);
            self::assertStringStartsWith('enqueue(): argument payload must be', $error->getMessage());
            $error = self::assertThrows(InvalidArgument::class, fn () => $queue->enqueueMany([['t', $value]]), $problem);
            self::assertStringStartsWith('enqueueMany(): ', $error->getMessage());
            $error = self::assertThrows(InvalidArgument::class, fn () => $client->cached('a', 60, fn () => $value), $problem);
            self::assertStringStartsWith('cached(): "a": the computed value', $error->getMessage());
        }
        self::assertSame(0, $queue->count());
        self::assertSame(7, $client->cached('a', 60, fn () => 7));
    }

    /** @return array<string, array{mixed, mixed}> */
    public static function kept(): array
    {
        $serializable = new class implements \JsonSerializable {
            public function jsonSerialize(): mixed
            {
                return new \stdClass();
            }
        };
        return [
            'an empty object' => [new \stdClass(), []],
            'a list that is an object' => [[new \ArrayObject([]), new \ArrayObject(['a' => 1]), new \ArrayIterator([])], [[], ['a' => 1], []]],
            'a date' => [[new \DateTimeZone('UTC'), new \stdClass()], [['timezone_type' => 3, 'timezone' => 'UTC'], []]],
            'an enum' => [[Suit::Hearts, new \stdClass()], ['hearts', []]],
            'what says so itself' => [$serializable, []],
            'public properties' => [[new Point(1), new \stdClass()], [['x' => 1, 'y' => null], []]],
            'a text' => [['{}'], ['{}']],
        ];
    }

    /** @dataProvider kept */
    public function testWhatJsonKeepsIsStored(mixed $value, mixed $stored): void
    {
        $client = $this->connect('memory:');
        $client->queue('q')->enqueue('t', $value);
        [$claim] = $client->queue('q')->claim();
        self::assertSame($stored, $claim->json());
        $claim->ack();
        self::assertSame($stored, $client->cached('a', 60, fn () => $value));
    }
}

final class Money
{
    public function __construct(private int $cents)
    {
    }
}

final class Point
{
    public function __construct(public int $x, public ?int $y = null)
    {
    }
}

enum Suit: string
{
    case Hearts = 'hearts';
}
