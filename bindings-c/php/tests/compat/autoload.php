<?php

declare(strict_types=1);

// What the tests of the drop-ins need, and those in the processes that they start.

error_reporting(E_ALL);

spl_autoload_register(function (string $class): void {
    $folders = [
        'Stanchion\\Tests\\Compat\\' => __DIR__,
        'Stanchion\\Tests\\Laravel\\' => __DIR__ . '/../laravel',
        'Stanchion\\' => __DIR__ . '/../../src',
    ];
    foreach ($folders as $space => $folder) {
        $file = $folder . '/' . strtr(substr($class, strlen($space)), '\\', '/') . '.php';
        if (str_starts_with($class, $space) && is_file($file)) {
            require $file;
            return;
        }
    }
});
