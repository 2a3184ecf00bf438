<?php

declare(strict_types=1);

// As composer would.
spl_autoload_register(static function (string $class): void {
    foreach (['Stanchion\\Tests\\' => __DIR__, 'Stanchion\\' => __DIR__ . '/../src'] as $prefix => $folder) {
        $file = $folder . '/' . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
        if (str_starts_with($class, $prefix) && is_file($file)) {
            require $file;
            return;
        }
    }
});
