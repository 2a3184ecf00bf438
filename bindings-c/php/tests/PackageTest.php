<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use PHPUnit\Framework\TestCase;
use Stanchion\Internal\Library;

/** The package as a user installs it, and what it says if something is missing. */
final class PackageTest extends TestCase
{
    private const PACKAGE = __DIR__ . '/..';
    private const CONNECT = 'try { Stanchion\Client::connect("memory:"); echo "connected"; } '
        . 'catch (Stanchion\Exception\LibraryUnavailable $error) { echo $error->getMessage(); }';
    private string $folder;

    protected function setUp(): void
    {
        $this->folder = sys_get_temp_dir() . '/package-' . bin2hex(random_bytes(4));
        mkdir($this->folder);
    }

    protected function tearDown(): void
    {
        exec('rm -rf ' . escapeshellarg($this->folder));
    }

    /** What a piece of PHP prints. @param array<string, string> $environment */
    private function php(string $code, array $environment = [], string ...$settings): string
    {
        $bootstrap = 'require ' . var_export(__DIR__ . '/bootstrap.php', true) . ';';
        return $this->output([PHP_BINARY, ...$settings, '-r', $bootstrap . $code], $environment);
    }

    /** @param list<string> $command @param array<string, string> $environment */
    private function output(array $command, array $environment = []): string
    {
        $process = proc_open(
            $command,
            [1 => ['pipe', 'w'], 2 => ['redirect', 1]],
            $pipes,
            $this->folder,
            $environment + getenv()
        );
        $output = stream_get_contents($pipes[1]);
        proc_close($process);
        return $output;
    }

    public function testEveryFileIsStrictAndParses(): void
    {
        $files = glob(self::PACKAGE . '/{src,src/*,tests,tests/programs,examples,examples/*,demo}/*.php', GLOB_BRACE);
        self::assertGreaterThan(60, count($files));
        foreach ($files as $file) {
            $source = file_get_contents($file);
            token_get_all($source, TOKEN_PARSE);
            self::assertStringContainsString("\ndeclare(strict_types=1);\n", $source, $file);
            self::assertDoesNotMatchRegularExpression('/\b(die|exit)\b/', str_contains($file, '/src/') ? $source : '', $file);
            if (str_contains($file, '/src/')) {
                self::assertLessThanOrEqual(120, max(array_map('strlen', explode("\n", $source))), $file);
            }
        }
    }

    public function testComposerInstallsIt(): void
    {
        $library = getenv('STANCHION_LIB');
        // With the library bundled, as a package for one platform would be.
        exec('cp -r ' . escapeshellarg(self::PACKAGE) . " $this->folder/package && rm -rf $this->folder/package/tests");
        $bundled = "$this->folder/package/lib/" . Library::platform();
        mkdir($bundled, recursive: true);
        copy($library, "$bundled/libstanchion.so");
        file_put_contents("$this->folder/composer.json", json_encode([
            'repositories' => [
                ['type' => 'path', 'url' => "$this->folder/package", 'options' => ['symlink' => false]],
                ['packagist' => false],
            ],
            'require' => ['stanchion/stanchion' => '@dev'],
        ]));
        $environment = ['COMPOSER_ALLOW_SUPERUSER' => '1', 'COMPOSER_HOME' => $this->folder, 'STANCHION_LIB' => ''];
        $said = $this->output(['composer', 'install', '--no-interaction', '--no-progress'], $environment);
        self::assertFileExists("$this->folder/vendor/autoload.php", $said);
        $code = 'require "vendor/autoload.php"; echo Stanchion\Client::connect("memory:")->lock("a")->hold(fn () => "held");';
        self::assertSame('held', $this->output([PHP_BINARY, '-r', $code], $environment));
        $header = $this->output(['vendor/bin/stanchion-ffi'], $environment);
        self::assertStringContainsString("\n#define FFI_LIB \"$this->folder/vendor/stanchion/stanchion/lib/", $header);
        $said = $this->output(['composer', 'validate', '--no-interaction', 'package/composer.json'], $environment);
        self::assertStringContainsString('package/composer.json is valid', $said);
    }

    public function testNothingHappensBeforeTheFirstCall(): void
    {
        $code = 'new ReflectionClass(Stanchion\Client::class); Stanchion\OnDuplicate::keep(); '
            . 'echo str_contains(file_get_contents("/proc/self/maps"), "libstanchion") ? "loaded" : "not yet";';
        self::assertSame('not yet', $this->php($code));
        self::assertSame('connected', $this->php(self::CONNECT));
    }

    public function testWhatItSaysWithoutALibrary(): void
    {
        $said = $this->php(self::CONNECT, ['STANCHION_LIB' => '/no/such/file.so']);
        self::assertStringContainsString('there is no file /no/such/file.so', $said);
        self::assertStringContainsString('make -C bindings-c install', $said);
        file_put_contents("$this->folder/text.so", 'no library');
        self::assertStringContainsString('text.so', $this->php(self::CONNECT, ['STANCHION_LIB' => "$this->folder/text.so"]));
        // PHP would not start with a header that names such a file.
        $said = $this->output([PHP_BINARY, self::PACKAGE . '/bin/stanchion-ffi'], ['STANCHION_LIB' => '/no/such/file.so']);
        self::assertStringStartsWith('stanchion-ffi: the library libstanchion was not found', $said);
        self::assertStringNotContainsString('FFI_LIB', $said);
    }

    public function testWhatItSaysWithoutFfi(): void
    {
        self::assertStringContainsString("PHP's extension FFI is missing", $this->php(self::CONNECT, [], '-n'));
        $said = $this->php(self::CONNECT, [], '-d', 'ffi.enable=0');
        self::assertStringContainsString("FFI is disabled here (ffi.enable = 0)", $said);
        foreach (['ffi.enable = true', '/preload.php', 'opcache.preload_user', 'ffi.preload'] as $remedy) {
            self::assertStringContainsString($remedy, $said);
        }
        $said = $this->php(self::CONNECT, [], '-d', 'ffi.enable=false');
        self::assertStringContainsString("FFI is disabled here (ffi.enable = false)", $said);
    }

    public function testALibraryOfAnotherVersion(): void
    {
        $header = file_get_contents(self::PACKAGE . '/stanchion.ffi.h');
        preg_match_all('/\b(stanchion_\w+)\(/', $header, $names);
        $functions = array_diff(array_unique($names[1]), ['stanchion_version', 'stanchion_abi_version']);
        $source = 'const char *stanchion_version(void) { return "9.9.9"; } int stanchion_abi_version(void) { return 9; }'
            . implode('', array_map(fn (string $name) => "int $name(void) { return 0; }", $functions));
        self::assertStringContainsString(
            'libstanchion 9.9.9 has the interface 9, but this package needs 0',
            $this->withLibrary($source)
        );
        $said = $this->withLibrary('int stanchion_abi_version(void) { return 0; }');
        self::assertStringContainsString('is of another version than this package', $said);
    }

    private function withLibrary(string $source): string
    {
        file_put_contents("$this->folder/other.c", $source);
        $said = $this->output(['cc', '-shared', '-fPIC', '-w', '-o', 'other.so', 'other.c']);
        self::assertFileExists("$this->folder/other.so", $said);
        return $this->php(self::CONNECT, ['STANCHION_LIB' => "$this->folder/other.so"]);
    }

    public function testPreloading(): void
    {
        $code = 'echo FFI::scope("STANCHION")->stanchion_abi_version(), (int) class_exists("Stanchion\Client", false), '
            . 'Stanchion\Client::connect("memory:")->lock("a")->hold(fn () => " held");';
        $preload = ['-d', 'opcache.enable_cli=1', '-d', 'opcache.preload=' . realpath(self::PACKAGE . '/preload.php')];
        // Root cannot preload without becoming somebody else.
        $user = posix_geteuid() === 0 ? ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups'] : [];
        $command = [...$user, PHP_BINARY, ...$preload, '-r', $code];
        self::assertSame('01 held', $this->output($command, ['TMPDIR' => '/tmp']));
        if ($user !== []) {
            $said = $this->output([PHP_BINARY, ...$preload, '-d', 'opcache.preload_user=nobody', '-r', $code]);
            self::assertStringContainsString('set ffi.preload to ', $said);
        }
    }

    public function testAPanicIsAnException(): void
    {
        // The function is there for this, and not declared.
        $declared = 'typedef struct stanchion_error stanchion_error; int32_t stanchion_private_panic(stanchion_error **);';
        $library = \FFI::cdef($declared, getenv('STANCHION_LIB'));
        self::assertSame(-16, $library->stanchion_private_panic(null));
        self::assertTrue(\Stanchion\Client::connect('memory:')->lock('a')->hold(fn () => true));
    }

    public function testTheWorkerExample(): void
    {
        $url = "sqlite:$this->folder/mails.db";
        $queue = \Stanchion\Client::connect($url)->queue('emails');
        $queue->enqueue('good', ['to' => 'user@example.org']);
        $queue->enqueue('bad', ['to' => 'nobody']);
        $command = [PHP_BINARY, self::PACKAGE . '/examples/worker.php'];
        $environment = ['STANCHION_URL' => $url, 'STANCHION_AUTOLOAD' => __DIR__ . '/bootstrap.php'] + getenv();
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => ['redirect', 1]], $pipes, null, $environment);
        self::assertSame("attempt 1: to user@example.org\n", fgets($pipes[1]));
        self::assertSame("given up: bad: no address: nobody\n", fgets($pipes[1]));
        proc_terminate($process, SIGTERM);
        self::assertStringEndsWith("1 sent\n", stream_get_contents($pipes[1]));
        proc_close($process);
    }
}
