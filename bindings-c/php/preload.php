<?php

/**
 * For the setting opcache.preload: loads the classes and the library once, before the first request.
 *
 * A preload script of your own can require this one.
 */

declare(strict_types=1);

(static function (): void {
    spl_autoload_register($load = static function (string $class): void {
        if (str_starts_with($class, 'Stanchion\\')) {
            require_once __DIR__ . '/src/' . strtr(substr($class, 10), '\\', '/') . '.php';
        }
    });
    // What extends classes of frameworks is left to those who have them.
    $adapters = '~^' . preg_quote(__DIR__, '~') . '/src/(Laravel|Symfony)/~';
    $files = new RecursiveIteratorIterator(new RecursiveDirectoryIterator(__DIR__ . '/src'));
    foreach ($files as $file) {
        if ($file->getExtension() === 'php' && !preg_match($adapters, $file->getPathname())) {
            require_once $file->getPathname();
        }
    }
    spl_autoload_unregister($load);
    Stanchion\Internal\Preload::library();
})();
