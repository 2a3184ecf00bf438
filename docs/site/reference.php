<?php

// The public classes below a folder as Markdown: what each is for, and its public methods with their types.

declare(strict_types=1);

[, $folder] = $argv;
spl_autoload_register(function (string $name) use ($folder): void {
    $file = $folder . '/' . str_replace('\\', '/', substr($name, strlen('Stanchion\\'))) . '.php';
    if (str_starts_with($name, 'Stanchion\\') && is_file($file)) {
        require $file;
    }
});

/** The text of a comment, without its stars and its tags. */
function said(string|false $comment): string
{
    $lines = array_map(fn ($line) => preg_replace('~^\s*(/\*\*|\*/|\*)\s?|\s*\*/$~', '', $line), explode("\n", (string) $comment));
    $text = preg_split('/^@/m', trim(implode("\n", $lines)))[0];
    return trim(preg_replace('/\s@(param|return|throws)\b.*$/s', '', $text));
}

function signature(ReflectionMethod $method): string
{
    $parameters = array_map(function (ReflectionParameter $one): string {
        $default = '';
        if ($one->isDefaultValueAvailable()) {
            $value = $one->isDefaultValueConstant() ? $one->getDefaultValueConstantName() : $one->getDefaultValue();
            $default = ' = ' . ($one->isDefaultValueConstant() ? $value : match (true) {
                $value === [] => '[]',
                is_object($value) => $value instanceof UnitEnum ? $value::class . '::' . $value->name : '...',
                default => strtolower(var_export($value, true)),
            });
        }
        return trim("{$one->getType()} " . ($one->isVariadic() ? '...' : '') . "\${$one->getName()}$default");
    }, $method->getParameters());
    $static = $method->isStatic() ? 'static ' : '';
    $returns = $method->hasReturnType() ? ': ' . $method->getReturnType() : '';
    return "{$static}function {$method->getName()}(" . implode(', ', $parameters) . ")$returns";
}

echo "# PHP\n";
// Those for a framework need the framework.
$files = [...glob("$folder/*.php"), ...glob("$folder/Exception/*.php"), ...glob("$folder/Testing/*.php")];
foreach ($files as $file) {
    $name = 'Stanchion\\' . str_replace('/', '\\', substr($file, strlen($folder) + 1, -4));
    $class = new ReflectionClass($name);
    if (str_contains((string) $class->getDocComment(), '@internal')) {
        continue;
    }
    echo "\n## $name\n\n", said($class->getDocComment()), "\n";
    if ($parent = $class->getParentClass()) {
        echo "\nExtends `{$parent->getName()}`.\n";
    }
    if ($class->isEnum()) {
        foreach ((new ReflectionEnum($name))->getCases() as $case) {
            echo "\n- `{$case->getName()}`: ", str_replace("\n", ' ', said($case->getDocComment()));
        }
        echo "\n";
    }
    foreach ($class->getProperties(ReflectionProperty::IS_PUBLIC) as $property) {
        if ($property->getDeclaringClass()->getName() === $name && !$class->isEnum()) {
            echo "\n- `{$property->getType()} \${$property->getName()}` ", str_replace("\n", ' ', said($property->getDocComment()));
        }
    }
    foreach ($class->getMethods(ReflectionMethod::IS_PUBLIC) as $method) {
        $isOurs = $method->getDeclaringClass()->getName() === $name && !$method->isInternal();
        if ($isOurs && !str_starts_with($method->getName(), '__') && !str_contains((string) $method->getDocComment(), '@internal')) {
            echo "\n### {$method->getName()} { #", strtolower(str_replace('\\', '-', $name)), '-', strtolower($method->getName()), " }\n\n";
            echo "```php\n", signature($method), "\n```\n\n", said($method->getDocComment()), "\n";
        }
    }
}
