<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use PHPUnit\Framework\TestCase;
use Stanchion\Exception\LeaseExpired;
use Stanchion\Exception\StanchionException;

/** What the READMEs show: every block of PHP runs, and the table has every exception. */
final class ReadmeTest extends TestCase
{
    private const PACKAGE = __DIR__ . '/..';

    /** @return array<string, array{string}> */
    public static function blocks(): array
    {
        $blocks = [];
        $files = ['package' => self::PACKAGE . '/README.md', 'project' => self::PACKAGE . '/../../README.md'];
        foreach (glob(self::PACKAGE . '/../../docs/guides/*.md') as $guide) {
            $files[basename($guide, '.md')] = $guide;
        }
        foreach ($files as $name => $file) {
            // Also those in tabs, which are indented.
            preg_match_all('/^( *)```php\n(.*?)^\1```/ms', file_get_contents($file), $found);
            foreach ($found[2] as $number => $block) {
                $blocks["$name $number"] = [$block];
            }
        }
        return $blocks;
    }

    /** @dataProvider blocks */
    public function testTheBlockRuns(string $block): void
    {
        $mark = bin2hex(random_bytes(4));
        $store = getenv('STANCHION_TEST_REDIS') . "?lock_prefix=L$mark:&queue_prefix=Q$mark:";
        $file = tempnam(sys_get_temp_dir(), 'block');
        $start = "<?php\ndeclare(strict_types=1);\n" . 'require ' . var_export(__DIR__ . '/bootstrap.php', true) . ";\n";
        file_put_contents($file, $start . str_replace(['redis://localhost', 'sqlite:app.db'], $store, $block));
        exec(escapeshellarg(PHP_BINARY) . ' -d zend.assertions=1 ' . escapeshellarg($file) . ' 2>&1', $lines, $status);
        unlink($file);
        self::assertSame(0, $status, implode("\n", $lines));
        self::assertStringNotContainsString('start again', implode("\n", $lines));
    }

    public function testBothReadmesHaveBlocks(): void
    {
        $names = implode(' ', array_keys(self::blocks()));
        self::assertStringContainsString('package 4', $names);
        self::assertStringContainsString('project 0', $names);
    }

    public function testEveryExceptionIsInTheTable(): void
    {
        preg_match_all('/^\| `(\w+)` \|[^|]*\| `(\w+)` \|$/m', file_get_contents(self::PACKAGE . '/README.md'), $rows);
        $files = array_map(fn (string $file) => basename($file, '.php'), glob(self::PACKAGE . '/src/Exception/*.php'));
        self::assertEqualsCanonicalizing(array_diff($files, ['StanchionException', 'Facts']), $rows[1]);
        foreach ($rows[1] as $index => $name) {
            $class = "Stanchion\\Exception\\$name";
            $parent = $rows[2][$index];
            self::assertTrue(is_subclass_of($class, StanchionException::class), $name);
            self::assertTrue(is_subclass_of($class, $parent) || is_subclass_of($class, "Stanchion\\Exception\\$parent"), $name);
        }
        self::assertTrue(is_subclass_of(LeaseExpired::class, \Stanchion\Exception\LeaseLost::class));
    }
}
